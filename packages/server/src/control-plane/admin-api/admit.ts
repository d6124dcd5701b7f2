import { SluiceError } from "sluice";
import { type Caller, demand, unasked } from "../../data-plane/access/access.ts";
import { findBearerToken } from "../../data-plane/access/bearer-token.ts";
import type { OwnLimits } from "../../data-plane/access/limit-own-api.ts";
import type { PathParameters, RawRequest } from "../../data-plane/transports/http/exchange.ts";
import { socketAddress } from "../../data-plane/transports/http/request-actor.ts";
import type { Admission } from "../../data-plane/transports/http/route-server.ts";
import { subjectTarget } from "../audit/audit-entry.ts";
import type { AdminContext, AdminRoute } from "./route.ts";

/**
 * Admits a caller whose token permits the request, at a bounded rate, and throws otherwise. Requests refused because of
 * their token are audited, in bounded number: failed logins and authenticated requests are both limited before anything
 * is written.
 */
export function createAdmit(
  { access, control }: Pick<AdminContext, "access" | "control">,
  limits: OwnLimits,
): (request: RawRequest, route: AdminRoute, params: PathParameters) => Admission {
  return (request, route, params) => {
    if (route.needs === "nothing") return { caller: unasked };
    const from = socketAddress(request.socket);
    const refused = (caller: Caller, error: unknown): unknown => {
      const { message } = error as Error;
      control.audit.refused({ caller, from }, route.action, findKind(route), renderTarget(params), message);
      return error;
    };
    let caller: Caller;
    try {
      caller = identify(access, findBearerToken(request.headers));
    } catch (error) {
      limits.countFailedLogin(from);
      throw refused(unasked, error);
    }
    const headers = limits.take(caller, route.access);
    try {
      demand(caller, route.needs);
    } catch (error) {
      throw refused(caller, error);
    }
    return { caller, headers };
  };
}

/** A token is required here even if the other ports accept anonymous callers. */
function identify(access: AdminContext["access"], token: string | undefined): Caller {
  if (token === undefined)
    throw new SluiceError("unauthenticated", "the control plane needs a token; send Authorization: Bearer TOKEN");
  const caller = access.identify(token);
  if (caller.role === undefined) throw new SluiceError("unauthenticated", "this token is not known here");
  return caller;
}

function findKind({ action }: AdminRoute): string {
  return action.slice(0, action.indexOf("."));
}

/** The object that the path names, as the audit names it: a policy's id, `user:u1` for a subject. */
function renderTarget({ kind, id, user_id: user, ...others }: PathParameters): string {
  if (user !== undefined) return subjectTarget("user", user);
  if (kind !== undefined) return id === undefined ? kind : subjectTarget(kind, id);
  return id ?? Object.values(others)[0] ?? "";
}
