import type { Migration } from "./migration.ts";

/** Denials that were recorded, and the subjects of each request, by which they are found. */
export const denials: Migration = {
  version: 5,
  statements: (text) => [
    `create table sluice_denials (
      id ${text} not null primary key,
      at_ms bigint not null,
      since_ms bigint not null,
      node ${text} not null,
      policy ${text} not null,
      policy_version bigint,
      limit_name ${text} not null,
      limit_by ${text} not null,
      dimensions ${text} not null,
      request_id ${text},
      reason ${text} not null,
      window_name ${text} not null,
      cost bigint not null,
      capacity bigint,
      remaining bigint,
      retry_after_ms bigint,
      degraded ${text},
      shadow integer not null,
      denials bigint not null,
      mixed integer not null
    )`,
    "create index sluice_denials_by_time on sluice_denials (at_ms, id)",
    "create index sluice_denials_by_policy on sluice_denials (policy, at_ms, id)",
    `create table sluice_denial_subjects (
      dimension ${text} not null,
      subject_key ${text} not null,
      at_ms bigint not null,
      denial ${text} not null,
      primary key (dimension, subject_key, at_ms, denial)
    )`,
    "create index sluice_denial_subjects_by_time on sluice_denial_subjects (at_ms)",
  ],
};
