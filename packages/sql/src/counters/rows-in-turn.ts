import { CounterRow, type StoredRow } from "./counter-row.ts";

/** What a transaction found, once its locks are held. Absent rows are missing. */
export interface FoundRows {
  /** The database's time. */
  readonly nowMs: number;
  readonly rows: ReadonlyMap<string, StoredRow>;
}

/** What a transaction is to write. */
export interface RowChanges {
  readonly put: readonly StoredRow[];
  readonly drop: readonly string[];
}

/**
 * The rows of one transaction, for actions that take place one after another, at the same instant. Each sees what those
 * before it changed. Marks (request ids and receipts) are rows that are written once, as they are.
 */
export class RowsInTurn {
  readonly nowMs: number;
  readonly #found: FoundRows;
  readonly #rows = new Map<string, CounterRow>();
  /** Undefined: dropped. */
  readonly #marks = new Map<string, StoredRow | undefined>();

  constructor(found: FoundRows, nowMs: number = found.nowMs) {
    this.nowMs = nowMs;
    this.#found = found;
  }

  row(id: string): CounterRow {
    let row = this.#rows.get(id);
    if (row === undefined) {
      row = new CounterRow(id, this.#found.rows.get(id), this.nowMs);
      this.#rows.set(id, row);
    }
    return row;
  }

  /** Undefined if there is none, or it has ended. */
  mark(id: string): string | undefined {
    const mark = this.#marks.has(id) ? this.#marks.get(id) : this.#found.rows.get(id);
    return mark === undefined || mark.untilMs <= this.nowMs ? undefined : mark.state;
  }

  setMark(id: string, state: string, untilMs: number): void {
    this.#marks.set(id, { id, state, untilMs: Math.ceil(untilMs) });
  }

  dropMark(id: string): void {
    this.#marks.set(id, undefined);
  }

  changes(): RowChanges {
    const put: StoredRow[] = [];
    const drop: string[] = [];
    for (const row of this.#rows.values()) if (row.changed) put.push(row.encode());
    for (const [id, mark] of this.#marks) {
      if (mark !== undefined) put.push(mark);
      else if (this.#found.rows.has(id)) drop.push(id);
    }
    return { put, drop };
  }
}
