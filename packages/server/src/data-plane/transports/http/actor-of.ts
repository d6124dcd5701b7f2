import { parseIp, renderIp } from "sluice";
import type { Actor } from "../../access/actor.ts";
import type { HttpRequest } from "./exchange.ts";

/** Who asks, and from which address. */
export function actorOf({ caller, socket }: Pick<HttpRequest, "caller" | "socket">): Actor {
  return { caller, from: addressOf(socket) };
}

/** A peer's address in its one form; empty where it has none. */
export function addressOf({ remoteAddress = "" }: HttpRequest["socket"]): string {
  const ip = parseIp(remoteAddress);
  return ip === undefined ? remoteAddress : renderIp(ip);
}
