export { type HotKeyBody, type HotKeysBody, hotKeys } from "../http/hot-key.ts";
export type { BodyOf, BodyShape, JsonObject, ViewOf } from "../shapes/body-shape.ts";
export type { AdminErrorBody } from "./admin-error.ts";
export { type AuditEntryBody, auditEntry, auditKinds, auditPage } from "./audit-entry.ts";
export { type ChangeBody, type ChangeView, change } from "./change.ts";
export { denialSubjectText, renderDenialCsv, renderUsageCsv } from "./csv.ts";
export { type DenialBody, type DenialPageBody, denial, denialPage } from "./denial.ts";
export {
  type DisabledPoliciesBody,
  type DisabledPolicyBody,
  type DisablingChangeBody,
  disabledModes,
  disabledPolicies,
  disabledPolicy,
  disablingBounds,
  disablingChange,
} from "./disabled-policy.ts";
export {
  type CountedSubjectsBody,
  type ImportChangeBody,
  type ImportPlanBody,
  type ImportReportBody,
  importChange,
  importPlan,
  type PlannedPolicyBody,
  type PolicyFilesBody,
} from "./import.ts";
export {
  type KillSwitchBody,
  type KillSwitchChangeBody,
  killSwitch,
  killSwitchBounds,
  killSwitchChange,
} from "./kill-switch.ts";
export { type KnownSubjectBody, knownSubject, knownSubjectPage, subjectSources } from "./known-subject.ts";
export {
  type LiveChangesBody,
  type LiveDecisionBody,
  type LiveDecisionsBody,
  type LiveEndBody,
  type LiveOverviewBody,
  type LiveTopic,
  liveChanges,
  liveDecision,
  liveDecisions,
  liveEnd,
  liveOverview,
  liveTopics,
} from "./live.ts";
export { type NodeBody, type NodesBody, node, nodes } from "./node.ts";
export type { PageBody } from "./page.ts";
export {
  type PlanBody,
  type PlanChangeBody,
  type PlanLimitBody,
  type PlanSummaryBody,
  plan,
  planChange,
  planPage,
  planSummary,
} from "./plan.ts";
export {
  type PolicyBody,
  type PolicyChangeBody,
  type PolicyDiffBody,
  type PolicyValidationBody,
  policy,
  policyChange,
  policyDiff,
  policyPage,
  policyValidation,
} from "./policy.ts";
export { type PolicySummaryBody, policySummary, policySummaryPage } from "./policy-summary.ts";
export {
  type RecordingBody,
  type RecordingChangeBody,
  type RecordingListBody,
  recording,
  recordingChange,
  recordingList,
} from "./recording.ts";
export {
  type ComparedFiguresBody,
  type RolloutBody,
  type RolloutChangeBody,
  type RolloutFiguresBody,
  type RolloutMinuteBody,
  type RolloutMinutesBody,
  type RolloutState,
  type RolloutStepBody,
  type RolloutWaitBody,
  rollout,
  rolloutChange,
  rolloutMinute,
  rolloutMinutes,
  rolloutPage,
  rolloutStates,
} from "./rollout.ts";
export { moment, type RolloutRequestBody, rolloutRequest } from "./rollout-request.ts";
export {
  type Permission,
  permissions,
  type SessionBody,
  type SessionCodeBody,
  session,
  sessionCode,
} from "./session.ts";
export {
  type SimulationBody,
  type SimulationListBody,
  simulation,
  simulationList,
} from "./simulation.ts";
export {
  type EffectiveLimitBody,
  type KeptSubjectBody,
  keptSubject,
  maxOverrideMs,
  type SubjectBlockBody,
  type SubjectBody,
  type SubjectChangeBody,
  type SubjectDeletionBody,
  type SubjectLimitBody,
  type SubjectResetBody,
  type SubjectUsageBody,
  subject,
  subjectChange,
  subjectDeletion,
  subjectPage,
  subjectReset,
  subjectUsage,
  type WindowUsageBody,
} from "./subject.ts";
export {
  type NewTokenBody,
  newToken,
  type Role,
  roles,
  type TokenBody,
  type TokenChangeBody,
  type TokenListBody,
  token,
  tokenChange,
  tokenList,
} from "./token.ts";
export { subjectOrders, type TopSubjectsBody, topSubjects } from "./top-subjects.ts";
export { type UsagePeriodBody, usagePage, usagePeriod } from "./usage.ts";
export { type UsageEventBody, type UsageEventsBody, usageEvent, usageEvents } from "./usage-event.ts";
export { type VersionBody, version, versionPage } from "./version.ts";
