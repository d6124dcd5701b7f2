import type { NextFetchEvent, NextProxy, NextRequest } from "next/server.js";
import { SluiceError } from "sluice";
import { type FetchOptions, rateLimit as limitFetch } from "./fetch.ts";
import type { Limits } from "./limits.ts";
import { statusOfThrown } from "./next/status-of-thrown.ts";
import type { RateLimitOptions } from "./rate-limit-options.ts";

export { rateLimitOf } from "./attach-ticket.ts";
export type { Limits } from "./limits.ts";
export type { RateLimitOptions, Sent } from "./rate-limit-options.ts";
export type { Ticket } from "./ticket.ts";

export interface NextRateLimitOptions extends RateLimitOptions<NextRequest> {
  /** The address at the other end of the connection, where a server of your own hands it over in a header that it always writes. */
  readonly peer?: ((request: NextRequest) => string | undefined) | undefined;
}

type Answer = Response | Promise<Response>;

/** Puts limits before a route handler: `export const GET = limited(handler)`. */
export type RouteGuard = <Rest extends unknown[]>(
  handler: (request: NextRequest, ...rest: Rest) => Answer,
) => (request: NextRequest, ...rest: Rest) => Answer;

/**
 * For route handlers of Next: `const limited = rateLimit("100/m", { trustedProxies: 1 })`, then
 * `export const GET = limited(handler)`. Next tells nobody's address, and leaves an `X-Forwarded-For` as the client wrote it,
 * so limits by address need `ip` or the number of `trustedProxies`. What Next answers when a handler throws, also by
 * `redirect()` and `notFound()`, has no header fields of ours.
 */
export function rateLimit(limits: Limits, options: NextRateLimitOptions = {}): RouteGuard {
  const guard = limitFetch(limits, { ...fetchOptions(options), waitUntil: keepAwake, statusOfThrown });
  // TypeScript does not see that whoever takes any arguments takes these.
  return guard as RouteGuard;
}

/**
 * For `proxy.ts`: `export const proxy = rateLimitProxy("100/m", { trustedProxies: 1 })`. Refuses before Next looks for a route,
 * and else has header fields on whatever Next answers. An app's own proxy is asked where the limits let a request in. A proxy
 * does not see answers, so nothing can be charged or given back by them; and Next reads an upload to its end before a proxy's
 * answer goes out, so what limits uploads stands at their route handlers. Its counters in memory are not those of the routes.
 */
export function rateLimitProxy(
  limits: Limits,
  options: Omit<NextRateLimitOptions, "charge" | "giveBack"> = {},
  proxy?: NextProxy,
): (request: NextRequest, event: NextFetchEvent) => Answer {
  for (const name of ["charge", "giveBack"] as const) {
    if ((options as NextRateLimitOptions)[name] === undefined) continue;
    const message = "belongs to route handlers: a proxy does not see the answer";
    throw new SluiceError("invalid_policies", `${name} ${message}`, [{ path: [name], message }]);
  }
  const guard = limitFetch(limits, fetchOptions(options));
  return guard(async (request: NextRequest, event: NextFetchEvent): Promise<Response> => {
    return (await proxy?.(request, event)) ?? (await loadNext()).NextResponse.next();
  });
}

/** Next hands out requests of its own only. */
function fetchOptions(options: NextRateLimitOptions): FetchOptions {
  return options as FetchOptions;
}

function keepAwake(settled: Promise<void>): void {
  loadNext()
    .then(({ after }) => after(settled))
    // Elsewhere than in a request of Next, such as a test of a handler, nobody has to be kept awake.
    .catch(() => {});
}

/** Not before a request is there: a process that loads this before it has started Next could not start it any more. */
function loadNext(): Promise<typeof import("next/server.js")> {
  return import("next/server.js");
}
