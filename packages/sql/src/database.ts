import type { Expression, Kysely } from "kysely";
import type { Tables } from "./tables.ts";

/**
 * look: one reading statement, without a transaction around it. read: one view of one moment. note: writes, at the same time as
 * others. upkeep: as a note, with more time. change: writes, one at a time in this process. migrate: as a change, with more time. alone: one statement of a migration,
 * without a transaction around it.
 */
export type TransactionMode = "look" | "read" | "note" | "upkeep" | "change" | "migrate" | "alone";

/** The database under a policy store: everything in which PostgreSQL and SQLite differ. */
export interface Database {
  readonly kind: "postgres" | "sqlite";
  /** Without user and password. */
  readonly where: string;
  /** Builds queries in its dialect, and runs none. */
  readonly tables: Kysely<Tables>;
  /** The type of texts, which sort by their bytes. */
  readonly textType: string;
  /** Whether a change notifies listeners (`postgres-notices.ts`). */
  readonly notifies: boolean;
  /** Whether a migration is one transaction. If not, its statements run one by one, possibly on several nodes at once. */
  readonly migratesWhole: boolean;
  /** The time of a clock that all users of the database share. */
  nowMs(): Expression<number>;
  /** Rejects with `PolicyStoreUnavailable`, in time, or with `TransactionConflict`. */
  begin(mode: TransactionMode): Promise<OpenTransaction>;
  /** Whether a statement failed because a table does not exist. */
  isMissingTable(error: unknown): boolean;
  /** Whether a statement failed because what it creates exists already. */
  isDuplicate(error: unknown): boolean;
  close(): Promise<void>;
}

/** Rejects with `PolicyStoreUnavailable`, with `TransactionConflict`, or with the database's error about the statement. */
export interface OpenTransaction {
  ask(sql: string, parameters: readonly unknown[]): Promise<Answer>;
  /** Rejects with `TransactionConflict` only if nothing was written for certain. */
  commit(): Promise<void>;
  /** Never rejects. */
  rollback(): Promise<void>;
}

export interface Answer {
  readonly rows: readonly unknown[];
  readonly changed: number;
}

/** The transaction conflicted with another and was undone. It can be retried. */
export class TransactionConflict extends Error {
  override readonly name = "TransactionConflict";
}
