import type { RequestHeaders, RequestSocket } from "../../../data-plane/transports/http/exchange.ts";

const plainName = "sluice-session";
/** A browser takes a cookie of this name only over TLS, for this host alone, and no other host can set it. */
const secureName = `__Host-${plainName}`;

/** The longest that a cookie is kept, even if the token is valid for longer. */
const maxAgeMs = 12 * 3_600_000;

/** A cookie that holds a token. Scripts cannot read it, and it ends with the token. */
export function renderSessionCookie(
  token: string,
  { secure, expiresMs = Infinity, nowMs }: { secure: boolean; expiresMs: number | undefined; nowMs: number },
): string {
  const seconds = Math.max(0, Math.floor(Math.min(maxAgeMs, expiresMs - nowMs) / 1_000));
  return renderCookie(encodeURIComponent(token), seconds, secure);
}

/** Deletes the cookie. */
export function renderNoSession(secure: boolean): string {
  return renderCookie("", 0, secure);
}

function renderCookie(value: string, seconds: number, secure: boolean): string {
  const name = secure ? secureName : plainName;
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`;
}

/**
 * The token in a request's cookie. Over TLS only the name that no other host can set; a proxy in front of us may speak TLS for us,
 * so without TLS both names count.
 */
export function findSessionCookie({ cookie }: RequestHeaders, { encrypted }: RequestSocket): string | undefined {
  if (typeof cookie !== "string") return undefined;
  const values = new Map<string, string>();
  for (const part of cookie.split(";")) {
    const at = part.indexOf("=");
    const name = part.slice(0, Math.max(0, at)).trim();
    if (name === secureName || name === plainName) values.set(name, part.slice(at + 1).trim());
  }
  const value = values.get(secureName) ?? (encrypted === true ? undefined : values.get(plainName));
  return value === undefined || value === "" ? undefined : decode(value);
}

/** A value that is not encoded as ours is no token. */
function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
