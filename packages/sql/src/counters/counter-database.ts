import type { FoundRows, RowChanges } from "./rows-in-turn.ts";

/**
 * The database under `SqlCounters`: everything in which PostgreSQL and SQLite differ. Every
 * call rejects with `CallFailed`, soon after `withinMs` at the latest.
 */
export interface CounterDatabase {
  /** Without user and password. */
  readonly where: string;
  /**
   * One transaction: locks these rows, reads them and then the marks, lets `decide` say what is to be written, writes it,
   * and commits. `decide` runs at most once, does not wait, and changes nothing but its own objects.
   */
  change(rows: readonly string[], marks: readonly string[], withinMs: number, decide: DecideRows): Promise<void>;
  /** Reads rows as they stand, without waiting for a lock. */
  look(rows: readonly string[], withinMs: number): Promise<FoundRows>;
  /**
   * Deletes up to `atMost` of the rows whose ids follow `after`, as far as they are idle. Returns the last id that it
   * looked at; undefined after the last row of all.
   */
  sweep(after: string, atMost: number): Promise<{ readonly last: string | undefined; readonly deleted: number }>;
  close(): Promise<void>;
}

export type DecideRows = (found: FoundRows) => RowChanges;

/** A call to the database that failed, and what became of it. */
export class CallFailed extends Error {
  override readonly name = "CallFailed";
  /**
   * conflict: undone, because another transaction was in the way. undone: nothing was written. unknown: it was to be
   * committed, and the answer was lost.
   */
  readonly outcome: "conflict" | "undone" | "unknown";
  /** Whether it took longer than it might. */
  readonly late: boolean;

  constructor(
    outcome: CallFailed["outcome"],
    message: string,
    options: { readonly cause?: unknown; readonly late?: boolean } = {},
  ) {
    super(message, { cause: options.cause });
    this.outcome = outcome;
    this.late = options.late ?? false;
  }
}
