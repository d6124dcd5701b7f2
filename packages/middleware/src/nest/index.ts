export { findTicket } from "../attach-ticket.ts";
export type { Limits } from "../limits.ts";
export type { RateLimitOptions, Sent } from "../rate-limit-options.ts";
export type { Ticket } from "../ticket.ts";
export type { NestRequest } from "./exchange.ts";
export { RateLimit, SkipRateLimit } from "./rate-limit.ts";
export { RateLimitException } from "./rate-limit-exception.ts";
export { RateLimitFilter } from "./rate-limit-filter.ts";
export { RateLimitGuard } from "./rate-limit-guard.ts";
export {
  type RateLimitAsyncOptions,
  RateLimitModule,
  type RateLimitModuleOptions,
} from "./rate-limit-module.ts";
export type { RateLimitSettings, RouteLimits } from "./route-gates.ts";
