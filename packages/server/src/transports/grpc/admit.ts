import { type Caller, demand, unasked } from "../../access/access.ts";
import { bearerTokenOf } from "../../access/bearer-token.ts";
import type { GrpcContext, Method } from "./method.ts";

/** All that is known of a call before its first message. */
export interface Asking {
  readonly authorization: string | undefined;
  /** The peer's address; empty where it has none. */
  readonly from: string;
}

/**
 * Who calls. Throws where they may not. Who calls what is in the audit is limited as over HTTP: by their address until they are
 * known, then by their token.
 */
export function admit(asking: Asking, { needs, audit }: Method, context: GrpcContext): Caller {
  if (needs === "nothing") return unasked;
  const { access, control, ownLimits } = context;
  const token = bearerTokenOf(asking);
  if (audit === undefined) {
    const caller = access.identify(token);
    demand(caller, needs);
    return caller;
  }
  const { action } = audit;
  const { from } = asking;
  const refused = (caller: Caller, error: unknown): unknown => {
    const kind = action.slice(0, action.indexOf("."));
    control?.audit.refused({ caller, from }, action, kind, "", (error as Error).message);
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

/** Throws where a caller that was let in may not ask any more. It is one call all the same, and counted once. */
export function readmit(asking: Pick<Asking, "authorization">, { needs }: Method, { access }: GrpcContext): void {
  if (needs !== "nothing") demand(access.identify(bearerTokenOf(asking)), needs);
}
