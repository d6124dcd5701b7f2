import type { Migration } from "./migration.ts";

/**
 * A series is a policy's limit, in total or for one subject. Its sums are kept per minute, and added up per hour and day.
 * Denials are apart, because most sums have none.
 */
export const usage: Migration = {
  version: 4,
  statements: (text) => [
    `create table sluice_usage_series (
      id bigint not null primary key,
      policy ${text} not null,
      limit_name ${text} not null,
      dimension ${text} not null,
      subject ${text} not null,
      subject_key ${text} not null,
      seen_s bigint not null
    )`,
    "create index sluice_usage_series_by_policy on sluice_usage_series (policy, id)",
    "create index sluice_usage_series_by_subject on sluice_usage_series (dimension, subject_key, id)",
    "create index sluice_usage_series_by_time on sluice_usage_series (seen_s)",
    `create table sluice_usage (
      series bigint not null,
      step_s bigint not null,
      start_s bigint not null,
      decided bigint not null,
      allowed bigint not null,
      denied bigint not null,
      cost bigint not null,
      degraded bigint not null,
      shadow_denied bigint not null,
      primary key (series, step_s, start_s)
    )`,
    "create index sluice_usage_by_time on sluice_usage (step_s, start_s)",
    `create table sluice_usage_denials (
      series bigint not null,
      step_s bigint not null,
      start_s bigint not null,
      reason ${text} not null,
      window_name ${text} not null,
      denied bigint not null,
      primary key (series, step_s, start_s, reason, window_name)
    )`,
    "create index sluice_usage_denials_by_time on sluice_usage_denials (step_s, start_s)",
    `create table sluice_usage_flushes (
      node ${text} not null,
      boot ${text} not null,
      sequence bigint not null,
      at_ms bigint not null,
      primary key (node, boot)
    )`,
    `create table sluice_usage_marks (
      hour_s bigint not null,
      node ${text} not null,
      primary key (hour_s, node)
    )`,
  ],
};
