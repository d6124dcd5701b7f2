export { AdminError, AdminUnavailable } from "./admin-error.ts";
export type {
  AdminClientOptions,
  CallOptions,
  ChangeOptions,
  OverwriteOptions,
  VersionedOptions,
} from "./admin-requests.ts";
export type { AdminAudit, AuditFilter } from "./audit.ts";
export type { AdminConfiguration, ImportMode, ImportOptions, PolicyFiles } from "./configuration.ts";
export { type AdminClient, createAdminClient } from "./create-admin-client.ts";
export type { AdminDenials, DenialFilter } from "./denials.ts";
export type { AdminKillSwitch } from "./kill-switch.ts";
export type { Listing } from "./listing.ts";
export type { AdminNodes, HotKeysFilter } from "./nodes.ts";
export type { AdminPlans, PlanChangeOptions, PlanLimitRequest } from "./plans.ts";
export type { AdminPolicies, DisableOptions, ExplainRequest, PolicyChangeOptions } from "./policies.ts";
export type { AdminRecordings, RecordingStartRequest } from "./recordings.ts";
export type { AdminRollouts, RolloutFilter, RolloutMoveOptions } from "./rollouts.ts";
export type { AdminSession } from "./session.ts";
export type { AdminSimulations, SimulationRequest } from "./simulations.ts";
export type {
  AdminSubject,
  AdminSubjects,
  BlockRequest,
  OverrideRequest,
  SubjectLimitRequest,
  SubjectResetRequest,
  WhichLimit,
} from "./subjects.ts";
export type { AdminTokens, NewTokenRequest } from "./tokens.ts";
export type { AdminUsage, UsageEventFilter, UsageFilter } from "./usage.ts";
