import type { Migration } from "./migration.ts";

export const nodes: Migration = {
  version: 3,
  statements: (text) => [
    `create table sluice_nodes (
      id ${text} not null primary key,
      name ${text} not null,
      version ${text} not null,
      started_ms bigint not null,
      seen_ms bigint not null,
      generation bigint not null,
      applied_ms bigint not null,
      details ${text} not null
    )`,
    "create index sluice_nodes_by_seen on sluice_nodes (seen_ms)",
    `create table sluice_leases (
      name ${text} not null primary key,
      holder ${text} not null,
      since_ms bigint not null,
      until_ms bigint not null
    )`,
  ],
};
