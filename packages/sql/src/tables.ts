/**
 * Rows as both databases hand them over: whole numbers are numbers, flags are 0 or 1, what is absent is null. Columns whose
 * names end in `_key` are what long texts are found by (`text-key.ts`).
 */
export interface Tables {
  readonly sluice_schema: SchemaRow;
  readonly sluice_pulse: PulseRow;
  readonly sluice_policies: PolicyRow;
  readonly sluice_versions: VersionRow;
  readonly sluice_subjects: SubjectRow;
  readonly sluice_subject_limits: SubjectLimitRow;
  readonly sluice_tokens: TokenRow;
  readonly sluice_audit: AuditRow;
  readonly sluice_rollouts: RolloutRow;
  readonly sluice_tallies: TallyRow;
  readonly sluice_nodes: NodeRow;
  readonly sluice_leases: LeaseRow;
}

/** One row, whose id is 1. */
export interface SchemaRow {
  readonly id: number;
  readonly version: number;
}

/** One row, whose id is 1. Changes take turns by it. */
export interface PulseRow {
  readonly id: number;
  readonly generation: number;
  readonly kill_mode: string | null;
  readonly kill_since_ms: number | null;
  readonly kill_until_ms: number | null;
  readonly kill_reason: string | null;
  readonly kill_author: string | null;
}

export interface PolicyRow {
  readonly id: string;
  readonly version: number;
  readonly document: string;
  readonly owner: string | null;
  readonly rule: string | null;
  readonly rule_key: string | null;
  readonly deleted: number;
  readonly changed_ms: number;
}

export interface VersionRow {
  readonly policy: string;
  readonly version: number;
  readonly document: string;
  readonly deleted: number;
  readonly author: string;
  readonly at_ms: number;
  readonly why: string;
  readonly revert_of: number | null;
}

export interface SubjectRow {
  readonly dimension: string;
  readonly value_key: string;
  readonly subject: string;
  readonly tier: string | null;
  readonly version: number;
  readonly changed_ms: number;
}

export interface SubjectLimitRow {
  readonly dimension: string;
  readonly value_key: string;
  readonly policy: string;
  readonly limit_name: string;
  /** 1 for an override, which has an end; 0 for a custom limit, which may stand beside it. */
  readonly temporary: number;
  readonly subject: string;
  readonly windows: string;
  readonly until_ms: number | null;
  readonly reason: string;
  readonly author: string;
  readonly at_ms: number;
}

export interface TokenRow {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly team: string | null;
  readonly sha256: string;
  readonly created_ms: number;
  readonly created_by: string;
  readonly expires_ms: number | null;
  readonly revoked_ms: number | null;
  readonly last_used_ms: number | null;
}

export interface AuditRow {
  readonly id: string;
  readonly at_ms: number;
  readonly actor: string;
  readonly actor_key: string;
  readonly role: string;
  readonly from_address: string;
  readonly action: string;
  readonly kind: string;
  readonly target: string;
  readonly target_key: string;
  readonly outcome: string;
  readonly why: string;
  readonly before_document: string | null;
  readonly after_document: string | null;
  readonly generation: number | null;
}

export interface RolloutRow {
  readonly id: string;
  readonly policy: string;
  readonly from_version: number;
  readonly to_version: number;
  readonly state: string;
  readonly shadow: number;
  readonly by_dimension: string;
  /** JSON. */
  readonly steps: string;
  readonly step: number;
  readonly step_since_ms: number;
  readonly starts_ms: number;
  readonly observe_for_ms: number;
  readonly expect_more_denials: number;
  readonly strikes: number;
  readonly looked_at_minute: number;
  readonly figures: string;
  readonly reason: string;
  readonly author: string;
  readonly created_ms: number;
  readonly changed_ms: number;
}

export interface TallyRow {
  readonly rollout: string;
  readonly node: string;
  readonly minute: number;
  readonly step: number;
  readonly side: string;
  readonly decided: number;
  readonly denied: number;
}

export interface NodeRow {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly started_ms: number;
  readonly seen_ms: number;
  readonly generation: number;
  readonly applied_ms: number;
  readonly details: string;
}

/** Who does what only one should, and for how long. */
export interface LeaseRow {
  readonly name: string;
  readonly holder: string;
  readonly since_ms: number;
  readonly until_ms: number;
}
