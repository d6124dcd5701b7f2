export { type Pace, pace } from "./pacing/pace.ts";
export { PaceError, type PaceErrorCode } from "./pacing/pace-error.ts";
export type { PaceLimit } from "./pacing/pace-limit.ts";
export type { PaceOptions, TurnOptions } from "./pacing/pacer.ts";
export type { HeaderSource } from "./reading/header-fields.ts";
export type { LimitReading } from "./reading/limit-reading.ts";
export { type RateLimitReading, type ReadRateLimitOptions, readRateLimit } from "./reading/read-rate-limit.ts";
export { RetryBudget, type RetryBudgetOptions } from "./retry/retry-budget.ts";
export {
  decideWaitMs,
  findRequestedWaitMs,
  isRefusal,
  isRepeatable,
  isReplayableBody,
  parseRetryOptions,
  type RepeatQuestion,
  type RetryOptions,
  type RetryRules,
} from "./retry/retry-rules.ts";
export type { Schedule } from "./schedule.ts";
