import type { Migration } from "./migration.ts";

export const policies: Migration = {
  version: 1,
  statements: (text) => [
    `create table sluice_pulse (
      id integer not null primary key,
      generation bigint not null,
      kill_mode ${text},
      kill_since_ms bigint,
      kill_until_ms bigint,
      kill_reason ${text},
      kill_author ${text}
    )`,
    "insert into sluice_pulse (id, generation) values (1, 0)",
    `create table sluice_policies (
      id ${text} not null primary key,
      version bigint not null,
      document ${text} not null,
      owner ${text},
      rule ${text},
      rule_key ${text},
      deleted integer not null,
      changed_ms bigint not null
    )`,
    "create unique index sluice_policies_by_rule on sluice_policies (rule_key) where deleted = 0",
    `create table sluice_versions (
      policy ${text} not null,
      version bigint not null,
      document ${text} not null,
      deleted integer not null,
      author ${text} not null,
      at_ms bigint not null,
      why ${text} not null,
      revert_of bigint,
      primary key (policy, version)
    )`,
    `create table sluice_subjects (
      dimension ${text} not null,
      value_key ${text} not null,
      subject ${text} not null,
      tier ${text},
      version bigint not null,
      changed_ms bigint not null,
      primary key (dimension, value_key)
    )`,
    `create table sluice_subject_limits (
      dimension ${text} not null,
      value_key ${text} not null,
      policy ${text} not null,
      limit_name ${text} not null,
      temporary integer not null,
      subject ${text} not null,
      windows ${text} not null,
      until_ms bigint,
      reason ${text} not null,
      author ${text} not null,
      at_ms bigint not null,
      primary key (dimension, value_key, policy, limit_name, temporary)
    )`,
    "create index sluice_subject_limits_by_end on sluice_subject_limits (until_ms)",
    `create table sluice_tokens (
      id ${text} not null primary key,
      name ${text} not null,
      role ${text} not null,
      team ${text},
      sha256 ${text} not null,
      created_ms bigint not null,
      created_by ${text} not null,
      expires_ms bigint,
      revoked_ms bigint,
      last_used_ms bigint
    )`,
    "create unique index sluice_tokens_by_name on sluice_tokens (name) where revoked_ms is null",
    `create table sluice_audit (
      id ${text} not null primary key,
      at_ms bigint not null,
      actor ${text} not null,
      actor_key ${text} not null,
      role ${text} not null,
      from_address ${text} not null,
      action ${text} not null,
      kind ${text} not null,
      target ${text} not null,
      target_key ${text} not null,
      outcome ${text} not null,
      why ${text} not null,
      before_document ${text},
      after_document ${text},
      generation bigint
    )`,
    "create index sluice_audit_by_time on sluice_audit (at_ms)",
    "create index sluice_audit_by_target on sluice_audit (target_key, id)",
    "create index sluice_audit_by_actor on sluice_audit (actor_key, id)",
    "create index sluice_audit_by_action on sluice_audit (action, id)",
    "create index sluice_audit_by_outcome on sluice_audit (outcome, id)",
  ],
};
