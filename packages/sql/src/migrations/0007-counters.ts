import type { Migration } from "./migration.ts";

/** Counters of policies with `counters: strong`, one row for each limit and subject; and request ids and receipts. */
export const counters: Migration = {
  version: 7,
  statements: (text) => [
    `create table sluice_counters (
      id ${text} not null primary key,
      state ${text} not null,
      until_ms bigint not null
    )`,
  ],
};
