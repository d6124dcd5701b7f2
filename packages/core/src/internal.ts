/**
 * `sluice/internal`: what Sluice's own packages share. It may change in any release: the packages are published together and
 * each pins its siblings' exact versions. Applications need nothing from here.
 */

export {
  type ArrivalRate,
  aheadMs,
  broughtBack,
  chargeArrival,
  creditArrival,
  giveArrival,
} from "./algorithms/arrival.ts";
export { chargeCount, countEndMs, creditCount, runningCount } from "./algorithms/count.ts";
export { distinctError, leastValues } from "./algorithms/distinct-values.ts";
export { chargeSliding, creditSliding, slidingStateAt } from "./algorithms/sliding.ts";
export { decideLog, SlidingLog } from "./algorithms/sliding-log.ts";
export {
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
} from "./check-options.ts";
export { systemClock } from "./clock.ts";
export { type Hash64, hashText } from "./counters/hash.ts";
export type { MemoryCountersStats } from "./counters/memory-counters.ts";
export type { ShadowDenial } from "./decision/decision.ts";
export { type CounterChange, createLimiterWatch, type LimiterWatch } from "./decision/limiter-watch.ts";
export { printable, printableJson, printableLines } from "./decision/printable.ts";
export { maxTextLength, redactText } from "./decision/redact-text.ts";
export { rememberPerLimit, rememberPerWindow } from "./decision/remember-per-window.ts";
export { type HeaderGeneration, headerGenerations } from "./decision/render-headers.ts";
export type { ProblemBody } from "./decision/render-problem.ts";
export { outageDecision } from "./decision/uncounted-decision.ts";
export { errorCodes, renderPath } from "./errors.ts";
export {
  Deadlines,
  Flight,
  type LineTime,
  mayRepeat,
  type Peer,
  type PendingQuestion,
  retryAtMs,
} from "./failing/deadlines.ts";
export { mostExcusedMs, Stalls, whyLate } from "./failing/stalls.ts";
export {
  type HotKeyTotals,
  maxSubjectLength as maxHotKeySubjectLength,
  type NamedLimit,
} from "./hot-keys/hot-keys.ts";
export { Lease } from "./leases/lease.ts";
export { type HeldLease, LeaseHolder, type LeaseOutcome } from "./leases/lease-holder.ts";
export type { LeasedCountersStats } from "./leases/leased-counters.ts";
export type { LeaseGrant, ResetCounter, SnapshotInfo, TogetherOptions } from "./limiter.ts";
export { maxPreviewCacheMs } from "./limiter-options.ts";
export { findApplying } from "./match/find-applying.ts";
export { type FoundDescriptor, findDescriptor, hasDescriptors } from "./match/find-descriptor.ts";
export type { ResetOptions } from "./match/find-subject-counters.ts";
export { inRollout } from "./match/in-rollout.ts";
export { findLimit, readLimitValues } from "./match/limit-values.ts";
export {
  defaultDeadlineMs,
  defaultIdTtlMs,
  maxBlockMs,
  maxCost,
  maxDeadlineMs,
  maxDimensionLength,
  maxDimensions,
  maxHoldAmount,
  maxHoldTtlMs,
  maxIdLength,
  maxIdTtlMs,
  maxNamedPolicies,
  maxNameLength,
} from "./policy/bounds.ts";
export { defaultPolicyId, isBuiltInDefault } from "./policy/default-policy.ts";
export { describePolicy } from "./policy/describe-policy.ts";
export type { DescriptorEntry, DescriptorNode } from "./policy/descriptor.ts";
export { limitScope } from "./policy/limit-scope.ts";
export { tierName } from "./policy/names.ts";
export { parseDuration, renderDuration } from "./policy/parse-duration.ts";
export { parseMoment } from "./policy/parse-moment.ts";
export { defaultPolicy } from "./policy/parse-policies.ts";
export { findPlanLimit, planLimitNames } from "./policy/plan-limits.ts";
export { maxPlanLimitNameLength } from "./policy/plan-shape.ts";
export {
  algorithms,
  type DisabledPolicy,
  type EventMode,
  type FailMode,
  type SubjectLimit,
  type Trial,
} from "./policy/policy.ts";
export { renderPolicyProblem } from "./policy/render-policy-problem.ts";
export { renderWindow } from "./policy/render-window.ts";
export { windowLabel, withLabel } from "./policy/window-label.ts";
export { identifyingDimensions, readDimension } from "./request/read-dimension.ts";
export { validateRequest } from "./request/validate-request.ts";
export { suggest } from "./shape/suggest.ts";
export { canonicalValue } from "./subject/canonical-value.ts";
export { parseCidr } from "./subject/cidr-set.ts";
export { hostAddress, isLoopback } from "./subject/host-address.ts";
export { defaultIpv6PrefixBits, parseIp, renderIp } from "./subject/ip-address.ts";
export { joinSubject } from "./subject/join-subject.ts";
export { untrackedList } from "./untracked-list.ts";
