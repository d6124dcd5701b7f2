import type { Migration } from "./migration.ts";

export const rollouts: Migration = {
  version: 2,
  statements: (text) => [
    `create table sluice_rollouts (
      id ${text} not null primary key,
      policy ${text} not null,
      from_version bigint not null,
      to_version bigint not null,
      state ${text} not null,
      shadow integer not null,
      by_dimension ${text} not null,
      steps ${text} not null,
      step bigint not null,
      step_since_ms bigint not null,
      starts_ms bigint not null,
      observe_for_ms bigint not null,
      expect_more_denials integer not null,
      strikes bigint not null,
      looked_at_minute bigint not null,
      figures ${text} not null,
      reason ${text} not null,
      author ${text} not null,
      created_ms bigint not null,
      changed_ms bigint not null
    )`,
    "create index sluice_rollouts_by_time on sluice_rollouts (created_ms, id)",
    "create index sluice_rollouts_by_policy on sluice_rollouts (policy, created_ms, id)",
    "create index sluice_rollouts_by_state on sluice_rollouts (state, created_ms, id)",
    `create table sluice_tallies (
      rollout ${text} not null,
      minute bigint not null,
      node ${text} not null,
      step bigint not null,
      side ${text} not null,
      decided bigint not null,
      denied bigint not null,
      primary key (rollout, minute, node, step, side)
    )`,
    "create index sluice_tallies_by_minute on sluice_tallies (minute)",
  ],
};
