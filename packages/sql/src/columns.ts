import type {
  AuditRow,
  NodeRow,
  PolicyRow,
  PulseRow,
  RolloutRow,
  SubjectLimitRow,
  SubjectRow,
  TallyRow,
  TokenRow,
  VersionRow,
} from "./tables.ts";

/** Columns are read by name: a later schema may have more, which are not for this program. */
function columnsOf<Column extends string>(all: Readonly<Record<Column, true>>): readonly Column[] {
  return Object.keys(all) as Column[];
}

export const pulseColumns: readonly (keyof PulseRow)[] = columnsOf<keyof PulseRow>({
  id: true,
  generation: true,
  kill_mode: true,
  kill_since_ms: true,
  kill_until_ms: true,
  kill_reason: true,
  kill_author: true,
});

export const policyColumns: readonly (keyof PolicyRow)[] = columnsOf<keyof PolicyRow>({
  id: true,
  version: true,
  document: true,
  owner: true,
  rule: true,
  rule_key: true,
  deleted: true,
  changed_ms: true,
});

export const versionColumns: readonly (keyof VersionRow)[] = columnsOf<keyof VersionRow>({
  policy: true,
  version: true,
  document: true,
  deleted: true,
  author: true,
  at_ms: true,
  why: true,
  revert_of: true,
});

export const subjectColumns: readonly (keyof SubjectRow)[] = columnsOf<keyof SubjectRow>({
  dimension: true,
  value_key: true,
  subject: true,
  tier: true,
  version: true,
  changed_ms: true,
});

export const subjectLimitColumns: readonly (keyof SubjectLimitRow)[] = columnsOf<keyof SubjectLimitRow>({
  dimension: true,
  value_key: true,
  policy: true,
  limit_name: true,
  temporary: true,
  subject: true,
  windows: true,
  until_ms: true,
  reason: true,
  author: true,
  at_ms: true,
});

export const tokenColumns: readonly (keyof TokenRow)[] = columnsOf<keyof TokenRow>({
  id: true,
  name: true,
  role: true,
  team: true,
  sha256: true,
  created_ms: true,
  created_by: true,
  expires_ms: true,
  revoked_ms: true,
  last_used_ms: true,
});

export const auditColumns: readonly (keyof AuditRow)[] = columnsOf<keyof AuditRow>({
  id: true,
  at_ms: true,
  actor: true,
  actor_key: true,
  role: true,
  from_address: true,
  action: true,
  kind: true,
  target: true,
  target_key: true,
  outcome: true,
  why: true,
  before_document: true,
  after_document: true,
  generation: true,
});

export const rolloutColumns: readonly (keyof RolloutRow)[] = columnsOf<keyof RolloutRow>({
  id: true,
  policy: true,
  from_version: true,
  to_version: true,
  state: true,
  shadow: true,
  by_dimension: true,
  steps: true,
  step: true,
  step_since_ms: true,
  starts_ms: true,
  observe_for_ms: true,
  expect_more_denials: true,
  strikes: true,
  looked_at_minute: true,
  figures: true,
  reason: true,
  author: true,
  created_ms: true,
  changed_ms: true,
});

export const tallyColumns: readonly (keyof TallyRow)[] = columnsOf<keyof TallyRow>({
  rollout: true,
  node: true,
  minute: true,
  step: true,
  side: true,
  decided: true,
  denied: true,
});

export const nodeColumns: readonly (keyof NodeRow)[] = columnsOf<keyof NodeRow>({
  id: true,
  name: true,
  version: true,
  started_ms: true,
  seen_ms: true,
  generation: true,
  applied_ms: true,
  details: true,
});
