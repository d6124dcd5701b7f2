import { describeTable, type Row, type Table } from "./describe-table.ts";
import type {
  AuditRecord,
  BlockRecord,
  DenialRecord,
  DisabledRecord,
  KillSwitchRecord,
  NodeRecord,
  PolicyRecord,
  RolloutRecord,
  SubjectLimitRecord,
  SubjectRecord,
  TallyRecord,
  TokenRecord,
  VersionRecord,
} from "./records.ts";
import { textKey } from "./text-key.ts";

// Columns whose names end in `_key` hold what long texts are found by (`text-key.ts`).

const policyTable = {
  name: "sluice_policies",
  key: ["id"],
  bounded: ["id"],
  fields: {
    id: "id",
    version: "version",
    document: "document",
    owner: "owner",
    ruleKey: "rule",
    deleted: { flag: "deleted" },
    changedMs: "changed_ms",
  },
  derived: {
    rule_key: ({ ruleKey }: PolicyRecord): string | null => (ruleKey === undefined ? null : textKey(ruleKey)),
  },
} as const;
export const policies: Table<PolicyRecord, typeof policyTable> = describeTable(policyTable);

const versionTable = {
  name: "sluice_versions",
  key: ["policy", "version"],
  bounded: ["policy"],
  fields: {
    policy: "policy",
    version: "version",
    document: "document",
    deleted: { flag: "deleted" },
    author: "author",
    atMs: "at_ms",
    why: "why",
    revertOf: "revert_of",
  },
} as const;
export const versions: Table<VersionRecord, typeof versionTable> = describeTable(versionTable);

const rolloutTable = {
  name: "sluice_rollouts",
  key: ["id"],
  bounded: ["id", "policy"],
  fields: {
    id: "id",
    policy: "policy",
    fromVersion: "from_version",
    toVersion: "to_version",
    state: "state",
    shadow: { flag: "shadow" },
    by: "by_dimension",
    steps: { json: "steps" },
    step: "step",
    stepSinceMs: "step_since_ms",
    startsMs: "starts_ms",
    observeForMs: "observe_for_ms",
    expectMoreDenials: { flag: "expect_more_denials" },
    strikes: "strikes",
    lookedAtMinute: "looked_at_minute",
    figures: "figures",
    reason: "reason",
    author: "author",
    createdMs: "created_ms",
    changedMs: "changed_ms",
  },
} as const;
export const rollouts: Table<RolloutRecord, typeof rolloutTable> = describeTable(rolloutTable);

const tallyTable = {
  name: "sluice_tallies",
  key: ["rollout", "minute", "node", "step", "side"],
  bounded: ["rollout", "node"],
  fields: {
    rollout: "rollout",
    node: "node",
    minute: "minute",
    step: "step",
    side: "side",
    decided: "decided",
    denied: "denied",
  },
} as const;
export const tallies: Table<TallyRecord, typeof tallyTable> = describeTable(tallyTable);

const subjectTable = {
  name: "sluice_subjects",
  key: ["dimension", "value_key"],
  bounded: ["dimension"],
  fields: { dimension: "dimension", value: "subject", tier: "tier", version: "version", changedMs: "changed_ms" },
  derived: { value_key: ({ value }: SubjectRecord): string => textKey(value) },
} as const;
export const subjects: Table<SubjectRecord, typeof subjectTable> = describeTable(subjectTable);

const subjectLimitTable = {
  name: "sluice_subject_limits",
  key: ["dimension", "value_key", "policy", "limit_name", "temporary"],
  bounded: ["dimension", "policy", "limit"],
  fields: {
    dimension: "dimension",
    value: "subject",
    policy: "policy",
    limit: "limit_name",
    windows: "windows",
    untilMs: "until_ms",
    reason: "reason",
    author: "author",
    atMs: "at_ms",
  },
  derived: {
    value_key: ({ value }: SubjectLimitRecord): string => textKey(value),
    /** 1 for an override, which ends; 0 for a custom limit, which may exist as well. */
    temporary: ({ untilMs }: SubjectLimitRecord): number => (untilMs === undefined ? 0 : 1),
  },
} as const;
export const subjectLimits: Table<SubjectLimitRecord, typeof subjectLimitTable> = describeTable(subjectLimitTable);

const disabledTable = {
  name: "sluice_disabled",
  key: ["policy"],
  bounded: ["policy"],
  fields: {
    policy: "policy",
    mode: "mode",
    sinceMs: "since_ms",
    untilMs: "until_ms",
    reason: "reason",
    author: "author",
  },
} as const;
export const disabled: Table<DisabledRecord, typeof disabledTable> = describeTable(disabledTable);

const blockTable = {
  name: "sluice_blocks",
  key: ["dimension", "value_key"],
  bounded: ["dimension"],
  fields: {
    dimension: "dimension",
    value: "subject",
    policies: { json: "policies" },
    untilMs: "until_ms",
    reason: "reason",
    author: "author",
    atMs: "at_ms",
  },
  derived: { value_key: ({ value }: BlockRecord): string => textKey(value) },
} as const;
export const blocks: Table<BlockRecord, typeof blockTable> = describeTable(blockTable);

const tokenTable = {
  name: "sluice_tokens",
  key: ["id"],
  bounded: ["id", "name"],
  fields: {
    id: "id",
    name: "name",
    role: "role",
    team: "team",
    sha256: "sha256",
    createdMs: "created_ms",
    createdBy: "created_by",
    expiresMs: "expires_ms",
    revokedMs: "revoked_ms",
    lastUsedMs: "last_used_ms",
  },
} as const;
export const tokens: Table<TokenRecord, typeof tokenTable> = describeTable(tokenTable);

const auditTable = {
  name: "sluice_audit",
  key: ["id"],
  bounded: ["id", "action"],
  fields: {
    id: "id",
    atMs: "at_ms",
    actor: "actor",
    role: "role",
    from: "from_address",
    action: "action",
    kind: "kind",
    target: "target",
    outcome: "outcome",
    why: "why",
    before: "before_document",
    after: "after_document",
    generation: "generation",
  },
  derived: {
    actor_key: ({ actor }: AuditRecord): string => textKey(actor),
    target_key: ({ target }: AuditRecord): string => textKey(target),
  },
} as const;
export const audit: Table<AuditRecord, typeof auditTable> = describeTable(auditTable);

const nodeTable = {
  name: "sluice_nodes",
  key: ["id"],
  bounded: ["id"],
  fields: {
    id: "id",
    name: "name",
    version: "version",
    startedMs: "started_ms",
    seenMs: "seen_ms",
    generation: "generation",
    appliedMs: "applied_ms",
    details: "details",
  },
} as const;
export const nodes: Table<NodeRecord, typeof nodeTable> = describeTable(nodeTable);

const denialTable = {
  name: "sluice_denials",
  key: ["id"],
  bounded: ["id"],
  fields: {
    id: "id",
    atMs: "at_ms",
    sinceMs: "since_ms",
    node: "node",
    policy: "policy",
    version: "policy_version",
    limit: "limit_name",
    by: { json: "limit_by" },
    dimensions: { json: "dimensions" },
    requestId: "request_id",
    reason: "reason",
    window: "window_name",
    cost: "cost",
    capacity: "capacity",
    remaining: "remaining",
    retryAfterMs: "retry_after_ms",
    degraded: "degraded",
    shadow: { flag: "shadow" },
    denials: "denials",
    mixed: { flag: "mixed" },
  },
} as const;
export const denials: Table<DenialRecord, typeof denialTable> = describeTable(denialTable);

/** Part of the one row of the pulse. All of its columns are null while it is off. */
const killSwitchTable = {
  name: "sluice_pulse",
  key: [],
  bounded: [],
  fields: {
    mode: "kill_mode",
    sinceMs: "kill_since_ms",
    untilMs: "kill_until_ms",
    reason: "kill_reason",
    author: "kill_author",
  },
} as const;
export const killSwitch: Table<KillSwitchRecord, typeof killSwitchTable> = describeTable(killSwitchTable);
type KillSwitchRow = Row<KillSwitchRecord, typeof killSwitchTable>;

interface UsagePeriod {
  readonly series: number;
  readonly step_s: number;
  readonly start_s: number;
}

/** The rows of every table. */
export interface Tables {
  readonly sluice_policies: Row<PolicyRecord, typeof policyTable>;
  readonly sluice_versions: Row<VersionRecord, typeof versionTable>;
  readonly sluice_rollouts: Row<RolloutRecord, typeof rolloutTable>;
  readonly sluice_tallies: Row<TallyRecord, typeof tallyTable>;
  readonly sluice_subjects: Row<SubjectRecord, typeof subjectTable>;
  readonly sluice_subject_limits: Row<SubjectLimitRecord, typeof subjectLimitTable>;
  readonly sluice_disabled: Row<DisabledRecord, typeof disabledTable>;
  readonly sluice_blocks: Row<BlockRecord, typeof blockTable>;
  readonly sluice_tokens: Row<TokenRecord, typeof tokenTable>;
  readonly sluice_audit: Row<AuditRecord, typeof auditTable>;
  readonly sluice_nodes: Row<NodeRecord, typeof nodeTable>;
  /** One row, whose id is 1. Changes take turns by locking it. */
  readonly sluice_pulse: { readonly id: number; readonly generation: number } & {
    readonly [Column in keyof KillSwitchRow]: KillSwitchRow[Column] | null;
  };
  /** One row, whose id is 1. */
  readonly sluice_schema: { readonly id: number; readonly version: number };
  /** Written by `queries/add-usage.ts` and `queries/roll-up-usage.ts` alone, as sums. */
  readonly sluice_usage_series: {
    readonly id: number;
    readonly policy: string;
    readonly limit_name: string;
    readonly dimension: string;
    readonly subject: string;
    readonly subject_key: string;
    /** The day on which it was last used. */
    readonly seen_s: number;
  };
  readonly sluice_usage: UsagePeriod & {
    readonly decided: number;
    readonly allowed: number;
    readonly denied: number;
    readonly cost: number;
    readonly degraded: number;
    readonly shadow_denied: number;
  };
  readonly sluice_usage_denials: UsagePeriod & {
    readonly reason: string;
    readonly window_name: string;
    readonly denied: number;
  };
  /** The last flush of each process that was added. */
  readonly sluice_usage_flushes: {
    readonly node: string;
    readonly boot: string;
    readonly sequence: number;
    readonly at_ms: number;
  };
  /** Hours whose minutes were changed by a node, and are not added up yet. */
  readonly sluice_usage_marks: { readonly hour_s: number; readonly node: string };
  readonly sluice_denials: Row<DenialRecord, typeof denialTable>;
  readonly sluice_denial_subjects: {
    readonly dimension: string;
    readonly subject_key: string;
    readonly at_ms: number;
    readonly denial: string;
  };
  /** Which node does what only one should, and for how long. */
  readonly sluice_leases: {
    readonly name: string;
    readonly holder: string;
    readonly since_ms: number;
    readonly until_ms: number;
  };
}
