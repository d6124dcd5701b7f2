import type { Migration } from "./migration.ts";

/** What operators decide for a while: policies that are disabled, and subjects that are blocked. */
export const exceptions: Migration = {
  version: 6,
  statements: (text) => [
    `create table sluice_disabled (
      policy ${text} not null primary key,
      mode ${text} not null,
      since_ms bigint not null,
      until_ms bigint not null,
      reason ${text} not null,
      author ${text} not null
    )`,
    `create table sluice_blocks (
      dimension ${text} not null,
      value_key ${text} not null,
      subject ${text} not null,
      policies ${text} not null,
      until_ms bigint not null,
      reason ${text} not null,
      author ${text} not null,
      at_ms bigint not null,
      primary key (dimension, value_key)
    )`,
  ],
};
