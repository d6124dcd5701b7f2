/**
 * `sluice/store`: everything you need to write a counter store. A store that keeps its state on a server decides there,
 * by the same formulas, and uses these functions to describe what it found, so that every store answers with the same
 * numbers.
 */
export { type ArrivalTake, creditWorthMs, decideArrival, takeArrival, worthMs } from "./algorithms/arrival.ts";
export { decideCount, onceRetentionMs } from "./algorithms/count.ts";
export { decideDistinct } from "./algorithms/distinct.ts";
export { decideSliding } from "./algorithms/sliding.ts";
export { createVerdict, type WindowVerdict, type WritableVerdict } from "./algorithms/window-verdict.ts";
export {
  epochMs,
  isLeasable,
  leaseAllowance,
  leaseEpoch,
  ledgerMarginMs,
  maxHoldMs,
  maxUnits,
} from "./counters/allowance.ts";
export { checkLeaseAsk } from "./counters/check-lease-ask.ts";
export type * from "./counters/counter-store.ts";
export { isRecorded } from "./counters/counter-store.ts";
export { unknownHold } from "./counters/holds.ts";
export { idempotencyConflict } from "./counters/idempotency-conflict.ts";
export {
  createOneOutcome,
  findSingleTakes,
  type OneOutcome,
  type SingleTakes,
  singleTakesFrom,
  type TakeCallback,
  wholeAnswer,
} from "./counters/single-takes.ts";
export { StoreUnavailable, type StoreUnavailableReason } from "./counters/store-unavailable.ts";
export { fits, isTaken, type LookedAt, outcomesFromPlan, type TakePlan } from "./counters/take-plan.ts";
export {
  type Admission,
  CircuitBreaker,
  type CircuitBreakerOptions,
  type CircuitState,
} from "./failing/circuit-breaker.ts";
export type { CalendarWindow, CompiledLimit, CompiledWindow, CounterKind } from "./limits/compiled-limit.ts";
