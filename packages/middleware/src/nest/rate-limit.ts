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

/** Limits that are told from options by what they are. Policies are given in full: `{ limits: { policies } }`. */
export type OwnLimits = string | readonly string[] | OneLimit | AskedLimiter;

/**
 * Limits of a controller's or a handler's own, instead of those around it: `@RateLimit("5/m")`, `@RateLimit(limit("5/m").by("user"))`,
 * `@RateLimit({ limits: "5/m", cost: 2 })`; or the limits around it, asked otherwise: `@RateLimit({ cost: 10 })`. On a
 * controller it is one limit for all of its handlers.
 *
 * Limits in one line count where those around them do, under the name `Controller` or `Controller.handler` unless they have
 * a `name`. They need one where counters are shared and two controllers have the same name.
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
  // Each place has a mark of its own, and so limits of its own, also where one decorator is used in several.
  return (...place: unknown[]) => Reflect.apply(SetMetadata(markKey, { ...mark }), undefined, place);
}

/** A limit that has not been told yet whom it counts is refused as such, and not as an option. */
function hasLimits(first: object): boolean {
  return "check" in first || "limiter" in first || "by" in first;
}

/** Neither counted nor limited: a controller, or a single handler. A handler's own `RateLimit` counts all the same. */
export function SkipRateLimit(): RouteDecorator {
  return SetMetadata(markKey, "skip" satisfies RouteMark);
}

/** Says what is wrong while the app is being loaded, and not to the first request. */
function refuseMistakes({ limits = nobody, ...options }: RouteLimits): void {
  // Shared counters need a name, which is found later.
  const alone = isOneLine(limits) ? { ...options, counters: undefined } : options;
  createGate(readerFor("http", ""), limits, alone);
}

/** Stands for the limits around, which are not known yet. */
const nobody: AskedLimiter = {
  check: () => Promise.reject(new Error("is never asked")),
  charge: () => Promise.reject(new Error("is never asked")),
  give: () => Promise.reject(new Error("is never asked")),
};
