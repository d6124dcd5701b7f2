import { SetMetadata } from "@nestjs/common";
import type { OneLimit } from "sluice";
import { createGate } from "../gate.ts";
import type { AskedLimiter } from "../limits.ts";
import type { RateLimitOptions } from "../rate-limit-options.ts";
import { type NestRequest, readerFor } from "./exchange.ts";
import { isOneLine, type RouteLimits, type RouteMark } from "./route-gates.ts";

export const markKey = "sluice:rate-limit";

/** On a controller, resolver or gateway, or on one of its handlers. */
export type RouteDecorator = ClassDecorator & MethodDecorator;

/** Limits that cannot be mistaken for options. Write policies as `{ limits: { policies } }`. */
export type OwnLimits = string | readonly string[] | OneLimit | AskedLimiter;

/**
 * Limits of a controller or a handler that replace the enclosing ones: `@RateLimit("5/m")`,
 * `@RateLimit(limit("5/m").by("user"))`, `@RateLimit({ limits: "5/m", cost: 2 })`; or the enclosing limits with other
 * options: `@RateLimit({ cost: 10 })`. On a controller it is one limit for all of its handlers.
 *
 * One-line limits use the counters of the enclosing ones, under the name `Controller` or `Controller.handler` unless they
 * have a `name`. They need one if counters are shared and two controllers have the same name.
 */
export function RateLimit<Request extends object = NestRequest>(
  limits: OwnLimits,
  options?: RateLimitOptions<Request>,
): RouteDecorator;
export function RateLimit<Request extends object = NestRequest>(options: RouteLimits<Request>): RouteDecorator;
export function RateLimit(first: OwnLimits | RouteLimits, options: RateLimitOptions<NestRequest> = {}): RouteDecorator {
  const isLimits = typeof first !== "object" || first === null || Array.isArray(first) || hasLimits(first);
  const mark = (isLimits ? { ...options, limits: first ?? null } : first) as RouteLimits;
  refuseMistakes(mark);
  // Each target gets a separate mark, and so separate limits, even if one decorator is used on several.
  return (...place: unknown[]) => Reflect.apply(SetMetadata(markKey, { ...mark }), undefined, place);
}

/** A limit without a dimension is refused as a limit, not as an unknown option. */
function hasLimits(first: object): boolean {
  return "check" in first || "limiter" in first || "by" in first;
}

/** Exempts a controller or a handler. A handler's own `RateLimit` still applies. */
export function SkipRateLimit(): RouteDecorator {
  return SetMetadata(markKey, "skip" satisfies RouteMark);
}

/** Reports mistakes while the app is loaded, not at the first request. */
function refuseMistakes({ limits = placeholderLimiter, ...options }: RouteLimits): void {
  // Shared counters need a name, which is chosen later.
  const alone = isOneLine(limits) ? { ...options, counters: undefined } : options;
  createGate(readerFor("http", ""), limits, alone);
}

/** Stands in for the enclosing limits, which are not known yet. */
const placeholderLimiter: AskedLimiter = {
  check: () => Promise.reject(new Error("is never called")),
  charge: () => Promise.reject(new Error("is never called")),
  give: () => Promise.reject(new Error("is never called")),
};
