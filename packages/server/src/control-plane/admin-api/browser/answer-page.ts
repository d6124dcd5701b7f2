import type { HttpResponse, RawRequest } from "../../../data-plane/transports/http/exchange.ts";
import { urlPath } from "../../../data-plane/transports/http/path-table.ts";
import type { BrowserGuard } from "./browser-guard.ts";
import type { ConsoleFiles } from "./console-files.ts";

export interface PageOptions {
  readonly guard: BrowserGuard;
  /** `missing`: the console is not built. */
  readonly files: ConsoleFiles | "missing";
}

/** Everything comes from this origin, no script or style is in the page itself, and no other page may frame it. */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const pageHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": contentPolicy,
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** Paths that no view has: an unknown one of these is a mistake, and is answered as such. */
const notViews = /^\/(api|rules|v1|assets)(\/|$)/;

/**
 * Answers requests for the console: a file, or for the path of a view the page itself, which shows that view. Undefined for
 * everything else. Paths are looked up among the files that were read at the start, so none leads anywhere else.
 */
export function createPageAnswer({ guard, files }: PageOptions) {
  return (request: RawRequest): HttpResponse | Promise<HttpResponse> | undefined => {
    const { method = "", url = "/" } = request;
    if (method !== "GET" && method !== "HEAD") return undefined;
    const path = urlPath(url);
    const known = files === "missing" ? undefined : files.get(path.slice(1));
    if (known === undefined && !isView(path)) return undefined;
    guard.admitHost(request);
    if (files === "missing") return notBuilt;
    return answerFile(request, known ?? files.get("index.html")!);
  };
}

/** A name with a dot is a file of ours, such as `/favicon.ico`; further down it may be a subject, such as an address. */
function isView(path: string): boolean {
  return path.startsWith("/") && !notViews.test(path) && !/^\/[^/]*\.[^/]*$/.test(path);
}

async function answerFile(
  { headers }: RawRequest,
  { type, etag, isHashed, encoded }: NonNullable<ReturnType<ConsoleFiles["get"]>>,
): Promise<HttpResponse> {
  const caching = {
    etag,
    vary: "accept-encoding",
    "cache-control": isHashed ? "public, max-age=31536000, immutable" : "no-cache",
  };
  if (headers["if-none-match"]?.split(",").some((one) => one.trim().replace(/^W\//, "") === etag))
    return { status: 304, headers: { ...pageHeaders, ...caching }, body: undefined };
  const { bytes, encoding } = await encoded(String(headers["accept-encoding"] ?? ""));
  return {
    status: 200,
    headers: {
      ...pageHeaders,
      ...caching,
      "content-type": type,
      ...(encoding !== undefined && { "content-encoding": encoding }),
    },
    body: bytes,
  };
}

const notBuilt: HttpResponse = {
  status: 200,
  headers: { ...pageHeaders, "content-type": "text/html; charset=utf-8" },
  body: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Sluice</title>
<h1>The console is not built</h1>
<p>The control plane of Sluice runs here, but its console is missing.</p>
<p>In a checkout, run <code>npm run generate</code> and restart the server. Otherwise install the package <code>@sluice/console</code>.</p>
<p>The API works without it: <a href="/openapi.json">/openapi.json</a> describes it, and <code>sluice --help</code> lists commands that use it.</p>
</html>
`,
};
