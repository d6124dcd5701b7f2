import type { Socket } from "node:net";
import { parseIp, renderIp } from "sluice/internal";
import { type Caller, demand, unasked } from "../../access/access.ts";
import { findBearerToken } from "../../access/bearer-token.ts";
import type { GrpcContext, Method } from "./method.ts";

/** What is known about a call before its first message. */
export interface Asking {
  readonly authorization: string | undefined;
  readonly socket: Pick<Socket, "remoteAddress">;
}

/**
 * Identifies the caller, and throws if it may not call this method. Methods that are audited are limited as over HTTP: by
 * address until the caller is identified, then by token.
 */
export function admit(asking: Asking, { needs, audit }: Method, context: GrpcContext): Caller {
  if (needs === "nothing") return unasked;
  const { access, audit: trail, ownLimits } = context;
  const token = findBearerToken(asking);
  if (audit === undefined) {
    const caller = access.identify(token);
    demand(caller, needs);
    return caller;
  }
  const { action } = audit;
  const from = findPeerAddress(asking.socket);
  const refused = (caller: Caller, error: unknown): unknown => {
    const kind = action.slice(0, action.indexOf("."));
    trail?.refused({ caller, from }, action, kind, "", (error as Error).message);
    return error;
  };
  let caller: Caller;
  try {
    caller = access.identify(token);
  } catch (error) {
    ownLimits.countFailedLogin(from);
    throw refused(unasked, error);
  }
  if (audit.access !== undefined) ownLimits.take(caller, audit.access);
  try {
    demand(caller, needs);
  } catch (error) {
    throw refused(caller, error);
  }
  return caller;
}

/** Throws if a caller that was admitted has lost its permission since. The call is counted once all the same. */
export function readmit(asking: Pick<Asking, "authorization">, { needs }: Method, { access }: GrpcContext): void {
  if (needs !== "nothing") demand(access.identify(findBearerToken(asking)), needs);
}

/** The peer's address; empty for a unix socket. */
function findPeerAddress({ remoteAddress = "" }: Asking["socket"]): string {
  const ip = parseIp(remoteAddress);
  return ip === undefined ? "" : renderIp(ip);
}
