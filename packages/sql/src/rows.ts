import type {
  AuditRecord,
  KillSwitchRecord,
  NodeRecord,
  PolicyRecord,
  RolloutRecord,
  RolloutState,
  RolloutStep,
  SubjectLimitRecord,
  SubjectRecord,
  TallyRecord,
  TokenRecord,
  VersionRecord,
} from "./records.ts";
import { checkStorable, madeStorable } from "./storable.ts";
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
import { textKey } from "./text-key.ts";

export function policyFromRow(row: PolicyRow): PolicyRecord {
  return {
    id: row.id,
    version: row.version,
    document: row.document,
    owner: row.owner ?? undefined,
    ruleKey: row.rule ?? undefined,
    deleted: row.deleted === 1,
    changedMs: row.changed_ms,
  };
}

export function rowFromPolicy(record: PolicyRecord): PolicyRow {
  checkStorable(record, ["id"]);
  return {
    id: record.id,
    version: record.version,
    document: record.document,
    owner: record.owner ?? null,
    rule: record.ruleKey ?? null,
    rule_key: record.ruleKey === undefined ? null : textKey(record.ruleKey),
    deleted: record.deleted ? 1 : 0,
    changed_ms: record.changedMs,
  };
}

export function versionFromRow(row: VersionRow): VersionRecord {
  return {
    policy: row.policy,
    version: row.version,
    document: row.document,
    deleted: row.deleted === 1,
    author: row.author,
    atMs: row.at_ms,
    why: row.why,
    revertOf: row.revert_of ?? undefined,
  };
}

export function rowFromVersion(record: VersionRecord): VersionRow {
  checkStorable(record, ["policy"]);
  return {
    policy: record.policy,
    version: record.version,
    document: record.document,
    deleted: record.deleted ? 1 : 0,
    author: record.author,
    at_ms: record.atMs,
    why: record.why,
    revert_of: record.revertOf ?? null,
  };
}

export function rolloutFromRow(row: RolloutRow): RolloutRecord {
  return {
    id: row.id,
    policy: row.policy,
    fromVersion: row.from_version,
    toVersion: row.to_version,
    state: row.state as RolloutState,
    shadow: row.shadow === 1,
    by: row.by_dimension,
    steps: JSON.parse(row.steps) as readonly RolloutStep[],
    step: row.step,
    stepSinceMs: row.step_since_ms,
    startsMs: row.starts_ms,
    observeForMs: row.observe_for_ms,
    expectMoreDenials: row.expect_more_denials === 1,
    strikes: row.strikes,
    lookedAtMinute: row.looked_at_minute,
    figures: row.figures,
    reason: row.reason,
    author: row.author,
    createdMs: row.created_ms,
    changedMs: row.changed_ms,
  };
}

export function rowFromRollout(record: RolloutRecord): RolloutRow {
  checkStorable(record, ["id", "policy"]);
  return {
    id: record.id,
    policy: record.policy,
    from_version: record.fromVersion,
    to_version: record.toVersion,
    state: record.state,
    shadow: record.shadow ? 1 : 0,
    by_dimension: record.by,
    steps: JSON.stringify(record.steps.map(({ percent, holdMs }) => ({ percent, holdMs }))),
    step: record.step,
    step_since_ms: record.stepSinceMs,
    starts_ms: record.startsMs,
    observe_for_ms: record.observeForMs,
    expect_more_denials: record.expectMoreDenials ? 1 : 0,
    strikes: record.strikes,
    looked_at_minute: record.lookedAtMinute,
    figures: record.figures,
    reason: record.reason,
    author: record.author,
    created_ms: record.createdMs,
    changed_ms: record.changedMs,
  };
}

export function subjectFromRow(row: SubjectRow): SubjectRecord {
  return {
    dimension: row.dimension,
    value: row.subject,
    tier: row.tier ?? undefined,
    version: row.version,
    changedMs: row.changed_ms,
  };
}

export function rowFromSubject(record: SubjectRecord): SubjectRow {
  checkStorable(record, ["dimension"]);
  return {
    dimension: record.dimension,
    value_key: textKey(record.value),
    subject: record.value,
    tier: record.tier ?? null,
    version: record.version,
    changed_ms: record.changedMs,
  };
}

export function subjectLimitFromRow(row: SubjectLimitRow): SubjectLimitRecord {
  return {
    dimension: row.dimension,
    value: row.subject,
    policy: row.policy,
    limit: row.limit_name,
    windows: row.windows,
    untilMs: row.until_ms ?? undefined,
    reason: row.reason,
    author: row.author,
    atMs: row.at_ms,
  };
}

/** Whether a limit has an end, as it is kept. */
export function temporaryOf(hasEnd: boolean): number {
  return hasEnd ? 1 : 0;
}

export function rowFromSubjectLimit(record: SubjectLimitRecord): SubjectLimitRow {
  checkStorable(record, ["dimension", "policy", "limit"]);
  return {
    dimension: record.dimension,
    value_key: textKey(record.value),
    policy: record.policy,
    limit_name: record.limit,
    temporary: temporaryOf(record.untilMs !== undefined),
    subject: record.value,
    windows: record.windows,
    until_ms: record.untilMs ?? null,
    reason: record.reason,
    author: record.author,
    at_ms: record.atMs,
  };
}

export function killSwitchFromRow(row: PulseRow): KillSwitchRecord | undefined {
  if (row.kill_mode === null) return undefined;
  return {
    mode: row.kill_mode as KillSwitchRecord["mode"],
    sinceMs: row.kill_since_ms ?? 0,
    untilMs: row.kill_until_ms ?? 0,
    reason: row.kill_reason ?? "",
    author: row.kill_author ?? "",
  };
}

export function rowFromKillSwitch(record: KillSwitchRecord | undefined): Omit<PulseRow, "id" | "generation"> {
  checkStorable(record ?? {}, []);
  return {
    kill_mode: record?.mode ?? null,
    kill_since_ms: record?.sinceMs ?? null,
    kill_until_ms: record?.untilMs ?? null,
    kill_reason: record?.reason ?? null,
    kill_author: record?.author ?? null,
  };
}

export function tokenFromRow(row: TokenRow): TokenRecord {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    team: row.team ?? undefined,
    sha256: row.sha256,
    createdMs: row.created_ms,
    createdBy: row.created_by,
    expiresMs: row.expires_ms ?? undefined,
    revokedMs: row.revoked_ms ?? undefined,
    lastUsedMs: row.last_used_ms ?? undefined,
  };
}

export function rowFromToken(record: TokenRecord): TokenRow {
  checkStorable(record, ["id", "name"]);
  return {
    id: record.id,
    name: record.name,
    role: record.role,
    team: record.team ?? null,
    sha256: record.sha256,
    created_ms: record.createdMs,
    created_by: record.createdBy,
    expires_ms: record.expiresMs ?? null,
    revoked_ms: record.revokedMs ?? null,
    last_used_ms: record.lastUsedMs ?? null,
  };
}

export function auditFromRow(row: AuditRow): AuditRecord {
  return {
    id: row.id,
    atMs: row.at_ms,
    actor: row.actor,
    role: row.role,
    from: row.from_address,
    action: row.action,
    kind: row.kind,
    target: row.target,
    outcome: row.outcome as AuditRecord["outcome"],
    why: row.why,
    before: row.before_document ?? undefined,
    after: row.after_document ?? undefined,
    generation: row.generation ?? undefined,
  };
}

/** What nobody can store is replaced: whatever it was that somebody tried, that they did is recorded. */
export function rowFromAudit(given: AuditRecord): AuditRow {
  const record = madeStorable(given);
  checkStorable(record, ["id", "action"]);
  return {
    id: record.id,
    at_ms: record.atMs,
    actor: record.actor,
    actor_key: textKey(record.actor),
    role: record.role,
    from_address: record.from,
    action: record.action,
    kind: record.kind,
    target: record.target,
    target_key: textKey(record.target),
    outcome: record.outcome,
    why: record.why,
    before_document: record.before ?? null,
    after_document: record.after ?? null,
    generation: record.generation ?? null,
  };
}

export function nodeFromRow(row: NodeRow): NodeRecord {
  return {
    id: row.id,
    name: row.name,
    version: row.version,
    startedMs: row.started_ms,
    seenMs: row.seen_ms,
    generation: row.generation,
    appliedMs: row.applied_ms,
    details: row.details,
  };
}

export function rowFromNode(record: NodeRecord): NodeRow {
  checkStorable(record, ["id"]);
  return {
    id: record.id,
    name: record.name,
    version: record.version,
    started_ms: record.startedMs,
    seen_ms: record.seenMs,
    generation: record.generation,
    applied_ms: record.appliedMs,
    details: record.details,
  };
}

export function tallyFromRow(row: TallyRow): TallyRecord {
  return {
    rollout: row.rollout,
    node: row.node,
    minute: row.minute,
    step: row.step,
    side: row.side as TallyRecord["side"],
    decided: row.decided,
    denied: row.denied,
  };
}

export function rowFromTally(record: TallyRecord): TallyRow {
  checkStorable(record, ["rollout", "node"]);
  const { rollout, node, minute, step, side, decided, denied } = record;
  return { rollout, node, minute, step, side, decided, denied };
}
