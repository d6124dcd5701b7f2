import { SluiceError } from "sluice";
import { isLoopback, parseIp, renderIp } from "sluice/internal";
import type { RequestHeaders, RequestSocket } from "../../../data-plane/transports/http/exchange.ts";

/** What the guard looks at. */
export interface BrowserRequest {
  readonly method?: string | undefined;
  readonly headers: RequestHeaders;
  readonly socket: RequestSocket;
}

/**
 * Keeps pages of other origins from using a browser's session. Each check throws `permission_denied`, with what to do.
 *
 * A cookie goes with every request that a browser sends here, whichever page caused it. `SameSite=Strict` does not help
 * against pages on other ports of the same host, nor against a foreign name that leads here (DNS rebinding).
 */
export interface BrowserGuard {
  /** The name in `Host` is one that this server is known by: a page under any other name is not ours. */
  admitHost(request: BrowserRequest): void;
  /** The request was made by our page: for requests with a cookie. */
  admitCookie(request: BrowserRequest): void;
  /** The request was not made by a page of another origin: for signing in and out, with a cookie or without. */
  admitSignIn(request: BrowserRequest): void;
}

export interface BrowserGuardOptions {
  /** The host that the server listens on, as settings name it. */
  readonly host?: string | undefined;
  /** Further names in `Host`. */
  readonly hosts?: readonly string[] | undefined;
}

/** The header that every changing request of the page has. A form cannot set it, and another origin needs our consent to. */
export const consoleHeader = "x-sluice-console";

export function createBrowserGuard({ host, hosts = [] }: BrowserGuardOptions = {}): BrowserGuard {
  const known = new Set([...(host === undefined ? [] : [host]), ...hosts].map((name) => name.toLowerCase()));

  function admitHost({ headers, socket }: BrowserRequest): void {
    const name = findHostName(headers);
    if (name !== undefined && (isLocalName(name) || known.has(name) || isLocalAddress(name, socket))) return;
    throw refused(
      `browsers are not served under the name ${JSON.stringify(headers.host ?? "")}; if it is a name of this server, add it to --console-hosts`,
    );
  }

  function admitOrigin({ headers, socket }: BrowserRequest): void {
    const { origin, "sec-fetch-site": site, host: asked } = headers;
    if (origin !== undefined && !isSameOrigin(String(origin), String(asked), socket))
      throw refused("the request comes from a page of another origin");
    if (site !== undefined && site !== "same-origin" && site !== "none")
      throw refused("the request comes from a page of another site");
  }

  return {
    admitHost,
    admitCookie(request): void {
      admitHost(request);
      admitOrigin(request);
      if (isSafe(request)) return;
      const { origin, "sec-fetch-site": site, [consoleHeader]: marked } = request.headers;
      // Typed into the address bar, or sent by something that is no browser: neither changes anything.
      if (origin === undefined && site !== "same-origin")
        throw refused("a change with a cookie needs Origin or Sec-Fetch-Site, which every browser sends");
      if (marked === undefined) throw refused(`a change with a cookie needs the header ${consoleHeader}`);
    },
    admitSignIn(request): void {
      admitHost(request);
      admitOrigin(request);
      if (request.headers[consoleHeader] === undefined)
        throw refused(`signing in and out needs the header ${consoleHeader}`);
    },
  };
}

/** Whether the browser speaks TLS, with us or with a proxy in front of us: its `Origin` says so, and no page can set that. */
export function isSecure({ headers, socket }: BrowserRequest): boolean {
  return socket.encrypted === true || /^https:/i.test(String(headers.origin ?? ""));
}

function refused(reason: string): SluiceError {
  return new SluiceError("permission_denied", reason);
}

function isSafe({ method }: BrowserRequest): boolean {
  return method === "GET" || method === "HEAD";
}

/** The name or address in `Host`, in its normal form, without the port. Undefined if it is none. */
function findHostName({ host }: RequestHeaders): string | undefined {
  if (typeof host !== "string" || /[/?#@\\\s]/.test(host)) return undefined;
  try {
    return new URL(`http://${host}`).hostname.replace(/\.$/, "");
  } catch {
    return undefined;
  }
}

function isLocalName(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost") || isLoopback(name);
}

/** Whether it is the address that the connection came in on. */
function isLocalAddress(name: string, { localAddress }: RequestSocket): boolean {
  const asked = parseIp(name.replace(/^\[(.*)\]$/, "$1"));
  const own = parseIp(localAddress ?? "");
  return asked !== undefined && own !== undefined && renderIp(asked) === renderIp(own);
}

function isSameOrigin(origin: string, host: string, { encrypted }: RequestSocket): boolean {
  try {
    const { protocol, host: from } = new URL(origin);
    if (protocol !== "https:" && (protocol !== "http:" || encrypted === true)) return false;
    return from === new URL(`${protocol}//${host}`).host;
  } catch {
    return false;
  }
}
