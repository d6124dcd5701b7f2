/** The engine: replays traffic against policies. `@sluice/simulate/logs` reads access logs, `@sluice/simulate/report` renders. */
export type { IdentityCause, IdentityReport } from "./replay/identity-report.ts";
export { IdentityRun, type IdentityRunOptions } from "./replay/identity-run.ts";
export { type FoundLimits, type LimitStep, usualFactors } from "./replay/limit-finder.ts";
export type { LeftOut } from "./replay/prepare-policies.ts";
export {
  type ClockLine,
  type CountsLine,
  type EndLine,
  type PoliciesLine,
  type RecordingCount,
  type RecordingCounts,
  type RecordingFacts,
  type RecordingHead,
  type RecordingLine,
  type RequestLine,
  recordingCounts,
  recordingFormat,
} from "./replay/recording-lines.ts";
export type { RecordedDecision, RecordedMoment, SimulatedRequest } from "./replay/simulated-request.ts";
export { Simulation, simulate } from "./replay/simulation.ts";
export type { SimulationOptions } from "./replay/simulation-options.ts";
export type {
  FlipMatrix,
  HurtReport,
  HurtSubject,
  LimitLine,
  MissingReport,
  PeakReport,
  PolicyReport,
  SideReport,
  SimulationReport,
} from "./replay/simulation-report.ts";
export type { Timeline, TimelineBucket } from "./replay/timeline.ts";
