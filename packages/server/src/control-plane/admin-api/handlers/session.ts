import { type SessionBody, session, sessionCode } from "@sluice/protocol/admin";
import { SluiceError } from "sluice";
import type { Caller } from "../../../data-plane/access/access.ts";
import { permissions } from "../../../data-plane/access/roles.ts";
import type { Credential, HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import type { SignInWith } from "../../sessions/sessions.ts";
import { isSecure } from "../browser/browser-guard.ts";
import { findSessionCookie, renderNoSession, renderSessionCookie } from "../browser/session-cookie.ts";
import type { AdminContext, AdminRequest } from "../route.ts";

export async function startSession(
  { actor, body, headers, socket }: AdminRequest<SignInWith>,
  { sessions, guard }: AdminContext,
): Promise<HttpResponse> {
  const request = { method: "POST", headers, socket };
  guard.admitSignIn(request);
  const { caller, token } = await sessions.signIn(body, actor.from);
  const { expiresMs } = caller;
  const cookie = renderSessionCookie(token, { secure: isSecure(request), expiresMs, nowMs: Date.now() });
  return { status: 200, headers: { "set-cookie": cookie }, body: sessionBody(caller, "cookie") };
}

export function showSession({ actor, credential }: AdminRequest): HttpResponse {
  return { status: 200, body: sessionBody(actor.caller, credential?.by ?? "bearer") };
}

/** Signs out the caller that the cookie names. Without one, or with one that no longer counts, the cookie is deleted all the same. */
export async function endSession(
  { actor, headers, socket }: AdminRequest,
  { sessions, live, access, guard }: AdminContext,
): Promise<HttpResponse> {
  const request = { method: "DELETE", headers, socket };
  guard.admitSignIn(request);
  const token = findSessionCookie(headers, socket);
  if (token !== undefined) live.endSession(token);
  const caller = token === undefined ? undefined : findCaller(token, access);
  if (caller !== undefined) await sessions.signOut(caller, actor.from);
  return { status: 204, headers: { "set-cookie": renderNoSession(isSecure(request)) }, body: undefined };
}

export function createSessionCode({ actor, credential }: AdminRequest, { sessions }: AdminContext): HttpResponse {
  return { status: 201, body: sessionCode.render(sessions.makeCode(actor.caller, demandCredential(credential))) };
}

function demandCredential(credential: Credential | undefined): Credential {
  if (credential !== undefined) return credential;
  throw new SluiceError("unauthenticated", "the control plane needs a token; send Authorization: Bearer TOKEN");
}

function findCaller(token: string, access: AdminContext["access"]): Caller | undefined {
  try {
    const caller = access.identify(token);
    return caller.role === undefined ? undefined : caller;
  } catch {
    return undefined;
  }
}

function sessionBody({ name, role, team, expiresMs, may }: Caller, by: SessionBody["by"]): SessionBody {
  if (role === undefined) throw new SluiceError("unauthenticated", "this token is not known here");
  const held = permissions.filter((permission) => may.has(permission));
  return session.render({ name, role, team, expiresMs, may: held, by });
}
