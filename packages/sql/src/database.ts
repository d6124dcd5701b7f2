import type { Expression, Kysely } from "kysely";
import type { Tables } from "./tables.ts";

/**
 * look: one statement, and nothing around it. read: one view of one moment. note: writes, beside others. change: writes, one at a
 * time in this process. migrate: as a change, and with more time. alone: one statement of a migration, and nothing around it.
 */
export type TransactionMode = "look" | "read" | "note" | "change" | "migrate" | "alone";

/** What a policy store stands on: one database, by the few things in which PostgreSQL and SQLite differ. */
export interface Database {
  readonly kind: "postgres" | "sqlite";
  /** Without user and password. */
  readonly where: string;
  /** Builds queries in its dialect, and asks nothing. */
  readonly tables: Kysely<Tables>;
  /** What texts are declared as: they sort by their bytes. */
  readonly textType: string;
  /** Whether a change tells those who listen (`postgres-notices.ts`). */
  readonly notifies: boolean;
  /** Whether a migration is one transaction. Where not, its statements are carried out one by one, perhaps by several at once. */
  readonly migratesWhole: boolean;
  /** The time of whatever clock all of its users share. */
  nowMs(): Expression<number>;
  /** Rejects with `PolicyStoreUnavailable`, in time, or with `MetAnother`. */
  begin(mode: TransactionMode): Promise<OpenTransaction>;
  /** Whether a statement failed because a table that it names is not there. */
  lacksTable(error: unknown): boolean;
  /** Whether a statement failed because what it makes is there already. */
  finds(error: unknown): boolean;
  close(): Promise<void>;
}

/** Rejects with `PolicyStoreUnavailable`, with `MetAnother`, or with the database's own error where the statement was at fault. */
export interface OpenTransaction {
  ask(sql: string, parameters: readonly unknown[]): Promise<Answer>;
  /** Rejects with `MetAnother` only where nothing was done for certain. */
  commit(): Promise<void>;
  /** Never rejects. */
  rollback(): Promise<void>;
}

export interface Answer {
  readonly rows: readonly unknown[];
  readonly changed: number;
}

/** The transaction met another one and was undone: to be begun anew. */
export class MetAnother extends Error {
  override readonly name = "MetAnother";
}
