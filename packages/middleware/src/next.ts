import type { NextFetchEvent, NextProxy, NextRequest } from "next/server.js";
import { SluiceError } from "sluice";
import { type FetchOptions, rateLimit as limitFetch } from "./fetch.ts";
import type { Limits } from "./limits.ts";
import { statusFromThrown } from "./next/status-from-thrown.ts";
import type { RateLimitOptions } from "./rate-limit-options.ts";

export { findTicket } from "./attach-ticket.ts";
export type { Limits } from "./limits.ts";
export type { RateLimitOptions, Sent } from "./rate-limit-options.ts";
export type { Ticket } from "./ticket.ts";

export interface NextRateLimitOptions extends RateLimitOptions<NextRequest> {
  /** The address at the other end of the connection, if your own server passes it in a header that it always sets. */
  readonly peer?: ((request: NextRequest) => string | undefined) | undefined;
}

type Answer = Response | Promise<Response>;

/** Puts limits before a route handler: `export const GET = limited(handler)`. */
export type RouteGuard = <Rest extends unknown[]>(
  handler: (request: NextRequest, ...rest: Rest) => Answer,
) => (request: NextRequest, ...rest: Rest) => Answer;

/**
 * For route handlers of Next: `const limited = rateLimit("100/m", { trustedProxies: 1 })`, then
 * `export const GET = limited(handler)`. Next does not expose addresses, and passes on `X-Forwarded-For` as the client
 * wrote it, so limits by address need `ip` or the number of `trustedProxies`. If a handler throws, `redirect()` and
 * `notFound()` included, Next's answer carries no rate limit headers.
 */
export function rateLimit(limits: Limits, options: NextRateLimitOptions = {}): RouteGuard {
  const guard = limitFetch(limits, { ...fetchOptions(options), waitUntil: keepAwake, statusFromThrown });
  // TypeScript cannot infer that a guard for any arguments accepts these.
  return guard as RouteGuard;
}

/**
 * For `proxy.ts`: `export const proxy = rateLimitProxy("100/m", { trustedProxies: 1 })`. Refuses before Next looks for a
 * route, and adds header fields to every other answer. An app's own proxy runs for requests that pass. A proxy does not see
 * answers, so nothing can be charged or given back by them. Next reads an upload to its end before it sends a proxy's
 * answer, so limit uploads in their route handlers. The proxy's counters in memory are separate from those of the routes.
 */
export function rateLimitProxy(
  limits: Limits,
  options: Omit<NextRateLimitOptions, "charge" | "giveBack"> = {},
  proxy?: NextProxy,
): (request: NextRequest, event: NextFetchEvent) => Answer {
  for (const name of ["charge", "giveBack"] as const) {
    if ((options as NextRateLimitOptions)[name] === undefined) continue;
    const message = "works in route handlers only: a proxy does not see the answer";
    throw new SluiceError("invalid_policies", `${name} ${message}`, [{ path: [name], message }]);
  }
  const guard = limitFetch(limits, fetchOptions(options));
  return guard(async (request: NextRequest, event: NextFetchEvent): Promise<Response> => {
    return (await proxy?.(request, event)) ?? (await loadNext()).NextResponse.next();
  });
}

/** Next passes only its own kind of request. */
function fetchOptions(options: NextRateLimitOptions): FetchOptions {
  return options as FetchOptions;
}

function keepAwake(settled: Promise<void>): void {
  loadNext()
    .then(({ after }) => after(settled))
    // Outside a Next request, such as in a test of a handler, there is nothing to keep awake.
    .catch(() => {});
}

/** Loaded at the first request: a process that loads this before it starts Next can no longer start it. */
function loadNext(): Promise<typeof import("next/server.js")> {
  return import("next/server.js");
}
