import { parseIp, renderIp } from "sluice/internal";
import type { Actor } from "../../access/actor.ts";
import type { HttpRequest } from "./exchange.ts";

/** The caller, and its address. */
export function requestActor({ caller, socket }: Pick<HttpRequest, "caller" | "socket">): Actor {
  return { caller, from: socketAddress(socket) };
}

/** A peer's address in its normal form; empty if it has none. */
export function socketAddress({ remoteAddress = "" }: HttpRequest["socket"]): string {
  const ip = parseIp(remoteAddress);
  return ip === undefined ? remoteAddress : renderIp(ip);
}
