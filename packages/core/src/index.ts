export { type CallLater, type Clock, ManualClock, systemClock } from "./clock.ts";
export type * from "./counters/counter-store.ts";
export { MemoryCounters, type MemoryCountersOptions, type MemoryCountersStats } from "./counters/memory-counters.ts";
export type { OneOutcome } from "./counters/single-takes.ts";
export { StoreUnavailable, type StoreUnavailableReason } from "./counters/store-unavailable.ts";
export { createLimiter } from "./create-limiter.ts";
export type * from "./decision/decision.ts";
export { printable, printableJson, printableLines } from "./decision/printable.ts";
export {
  type HeaderGeneration,
  headerGenerations,
  type RenderHeadersOptions,
  renderHeaders,
} from "./decision/render-headers.ts";
export { type ProblemBody, renderProblemBody } from "./decision/render-problem.ts";
export { retryAfterSeconds } from "./decision/retry-after.ts";
export { type ErrorCode, errorCodes, type Problem, renderPath, renderProblem, SluiceError } from "./errors.ts";
export { renderExplanation } from "./explain.ts";
export {
  type Admission,
  CircuitBreaker,
  type CircuitBreakerOptions,
  type CircuitState,
} from "./failing/circuit-breaker.ts";
export {
  type HotKey,
  type HotKeyRates,
  HotKeys,
  type HotKeysOptions,
  type HotKeyTotals,
  type TopOptions,
} from "./hot-keys/hot-keys.ts";
export { LeasedCounters, type LeasedCountersStats } from "./leases/leased-counters.ts";
export type { LeasedCountersOptions } from "./leases/leased-counters-options.ts";
export {
  type LimitBuilder,
  type LimitCheckOptions,
  type LimitOptions,
  limit,
  type OneLimit,
  type SubjectOf,
  type WrittenWindow,
} from "./limit.ts";
export type * from "./limiter.ts";
export { maxPreviewCacheMs } from "./limiter-options.ts";
export type { CalendarWindow, CompiledLimit, CompiledWindow, CounterKind } from "./limits/compiled-limit.ts";
export { lintPolicies } from "./lint/lint-policies.ts";
export { type FoundDescriptor, findDescriptor, hasDescriptors } from "./match/find-descriptor.ts";
export type { ResetOptions, SkippedLimit, SubjectResetRequest } from "./match/find-subject-counters.ts";
export { inRollout } from "./match/in-rollout.ts";
export type { OnTrial } from "./match/report-trials.ts";
export { MemorySubjectDirectory, type SubjectDirectory } from "./match/subject-directory.ts";
export {
  maxBlockMs,
  maxCost,
  maxDeadlineMs,
  maxDimensionLength,
  maxDimensions,
  maxIdLength,
  maxIdTtlMs,
  maxNamedPolicies,
  maxNameLength,
} from "./policy/bounds.ts";
export type * from "./policy/descriptor.ts";
export { parseDuration, renderDuration } from "./policy/parse-duration.ts";
export { defaultPolicy, parsePolicies } from "./policy/parse-policies.ts";
export { parseWindow } from "./policy/parse-window.ts";
export type * from "./policy/policy.ts";
export { algorithms } from "./policy/policy.ts";
export { policyFileSchema } from "./policy/policy-schema.ts";
export { renderWindow } from "./policy/render-window.ts";
export { windowLabel, withLabel } from "./policy/window-label.ts";
export type { CheckRequest, GivenLimit } from "./request/check-request.ts";
export { validateRequest } from "./request/validate-request.ts";
export { byType, listOf, oneOrMany } from "./shape/list-shapes.ts";
export { mapOf, objectOf, openObjectOf } from "./shape/object-shapes.ts";
export {
  boolean,
  choice,
  described,
  integer,
  type JsonSchema,
  number,
  parseShape,
  type ReadOf,
  type ReadResult,
  readShape,
  refine,
  type Shape,
  text,
} from "./shape/shape.ts";
export { canonicalValue } from "./subject/canonical-value.ts";
export { type CidrSet, createCidrSet, parseCidr } from "./subject/cidr-set.ts";
export { type ClientIpQuestion, findClientIp, type TrustedProxies } from "./subject/client-ip.ts";
export { type IpAddress, ipSubject, parseIp, renderIp } from "./subject/ip-address.ts";
