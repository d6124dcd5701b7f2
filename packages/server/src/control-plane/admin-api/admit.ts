import { SluiceError } from "sluice";
import { type Caller, demand, unasked } from "../../data-plane/access/access.ts";
import { findBearerToken } from "../../data-plane/access/bearer-token.ts";
import type { OwnLimits } from "../../data-plane/access/limit-own-api.ts";
import type { Credential, PathParameters, RawRequest } from "../../data-plane/transports/http/exchange.ts";
import { socketAddress } from "../../data-plane/transports/http/request-actor.ts";
import type { Admission } from "../../data-plane/transports/http/route-server.ts";
import { subjectTarget } from "../audit/audit-entry.ts";
import type { BrowserGuard } from "./browser/browser-guard.ts";
import { findSessionCookie } from "./browser/session-cookie.ts";
import type { AdminContext, AdminRoute } from "./route.ts";

export interface AdmitOptions {
  readonly limits: OwnLimits;
  readonly guard: BrowserGuard;
}

/**
 * Admits a caller whose token permits the request, at a bounded rate, and throws otherwise. The token is in `Authorization`, or in
 * the cookie of a page of ours. Requests refused because of their token are audited, in bounded number: failed logins and
 * authenticated requests are both limited before anything is written. A page that asks whether it is signed in, and is not, has
 * tried no token: it does not count.
 */
export function createAdmit(
  { access, control }: Pick<AdminContext, "access" | "control">,
  { limits, guard }: AdmitOptions,
): (request: RawRequest, route: AdminRoute, params: PathParameters) => Admission {
  return (request, route, params) => {
    if (route.needs === "nothing") return { caller: unasked };
    if (route.asksWho === true && !hasCredential(request)) throw noToken();
    const from = socketAddress(request.socket);
    const refused = (caller: Caller, error: unknown): unknown => {
      const { message } = error as Error;
      control.audit.refused({ caller, from }, route.action, findKind(route), renderTarget(params), message);
      return error;
    };
    let caller: Caller;
    let credential: Credential;
    try {
      credential = findCredential(access, guard, request);
      caller = credential.identify();
    } catch (error) {
      limits.countFailedLogin(from);
      throw refused(unasked, error);
    }
    const headers = limits.take(caller, route.counts ?? route.access);
    try {
      demand(caller, route.needs);
    } catch (error) {
      throw refused(caller, error);
    }
    return { caller, credential, headers };
  };
}

/** Throws `unauthenticated` without one, and `permission_denied` if a page of another origin caused the request. */
function findCredential(access: AdminContext["access"], guard: BrowserGuard, request: RawRequest): Credential {
  const bearer = findBearerToken(request.headers);
  if (bearer !== undefined) return { by: "bearer", token: bearer, identify: () => identify(access, bearer) };
  const cookie = findSessionCookie(request.headers, request.socket);
  if (cookie === undefined) throw noToken();
  guard.admitCookie(request);
  return { by: "cookie", token: cookie, identify: () => identify(access, cookie) };
}

function hasCredential({ headers, socket }: RawRequest): boolean {
  return headers.authorization !== undefined || findSessionCookie(headers, socket) !== undefined;
}

function noToken(): SluiceError {
  return new SluiceError("unauthenticated", "the control plane needs a token; send Authorization: Bearer TOKEN");
}

/** A token is required here even if the other ports accept anonymous callers. */
function identify(access: AdminContext["access"], token: string): Caller {
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
