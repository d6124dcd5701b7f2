/**
 * `sluice/store`: what a counter store outside of this package is written with. A store that keeps state elsewhere decides
 * there, by the same formulas, and lets these functions describe what it found, so that every store answers in the same
 * numbers. Packages around this one also take from here what they check their options with, and what they must agree on.
 */
export { type ArrivalTake, creditWorthMs, decideArrival, takeArrival, worthMs } from "./algorithms/arrival.ts";
export { decideCount, onceRetentionMs } from "./algorithms/count.ts";
export { decideSliding } from "./algorithms/sliding.ts";
export { createVerdict, type WindowVerdict, type WritableVerdict } from "./algorithms/window-verdict.ts";
export {
  aClock,
  aFunction,
  anObject,
  aText,
  type CheckedCall,
  checkOptions,
  numberFrom,
  type OptionForm,
  type OptionForms,
  oneOf,
  optionsError,
  trueOrFalse,
  withMethods,
} from "./check-options.ts";
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
export { isRecorded } from "./counters/counter-store.ts";
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
export { fits, isTaken, type LookedAt, outcomesFromPlan, type TakePlan } from "./counters/take-plan.ts";
export { rememberPerLimit, rememberPerWindow } from "./decision/remember-per-window.ts";
export { outageRetryMs } from "./decision/retry-after.ts";
export { outageDecision } from "./decision/uncounted-decision.ts";
export {
  Deadlines,
  Flight,
  type Line,
  type LineTime,
  mayRepeat,
  type Peer,
  type PendingQuestion,
  retryAtMs,
} from "./failing/deadlines.ts";
export { type Excusable, excuse, isStarved, mostExcusedMs, Stalls, whyLate } from "./failing/stalls.ts";
export { Lease, type LeaseTimes } from "./leases/lease.ts";
export {
  type HeldLease,
  LeaseHolder,
  type LeaseOutcome,
  type LeasePhase,
} from "./leases/lease-holder.ts";
export { defaultDeadlineMs, defaultIdTtlMs } from "./policy/bounds.ts";
export { defaultPolicyId, isBuiltInDefault } from "./policy/default-policy.ts";
export { limitScope } from "./policy/limit-scope.ts";
export { defaultIpv6PrefixBits } from "./subject/ip-address.ts";
export { untrackedList } from "./untracked-list.ts";
