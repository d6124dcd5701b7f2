import type { ResolvedLimit } from "./counter-store.ts";
import { CounterBudget, CounterTable } from "./counter-table.ts";

const maxRecords = 100_000;
/**
 * A record is kept for two of its limit's longest windows, or for `block_for` if that is longer, but no longer than
 * this.
 */
const longestMs = 30 * 24 * 60 * 60 * 1000;

/**
 * What is recorded with limits of counters in memory: when each last decided, and how much it has denied in a row. A
 * separate table of bounded size, so that a record never takes a counter's place: when it is full, other records go.
 */
export class LimitRecords {
  /** Words: when it is forgotten, when it was updated, the cost denied. */
  readonly #table: CounterTable;

  constructor() {
    const budget = new CounterBudget(maxRecords, Number.POSITIVE_INFINITY);
    this.#table = budget.watch(new CounterTable(3, budget));
  }

  note(
    lo: number,
    hi: number,
    { limit, windows, cost }: ResolvedLimit,
    decided: "allowed" | "denied",
    nowMs: number,
  ): void {
    const foundAt = this.#table.find(lo, hi || 1);
    const at = foundAt >= 0 ? foundAt : this.#table.insert(lo, hi || 1, nowMs);
    if (at < 0) return;
    const { numbers } = this.#table;
    const before = foundAt >= 0 && numbers[at]! > nowMs ? numbers[at + 2]! : 0;
    this.#table.setLeft(at, 0.5);
    const perMs = Math.max(...windows.map((window) => Math.max(window.perMs, window.furthestMs)));
    // A block outlasts idle windows.
    numbers[at] = nowMs + Math.min(Math.max(2 * perMs, limit.blockForMs), longestMs);
    numbers[at + 1] = nowMs;
    numbers[at + 2] = decided === "allowed" ? 0 : before + cost;
  }

  read(lo: number, hi: number, nowMs: number): { readonly denied: number; readonly updatedMs: number | undefined } {
    const at = this.#table.find(lo, hi || 1);
    const { numbers } = this.#table;
    if (at < 0 || numbers[at]! <= nowMs) return { denied: 0, updatedMs: undefined };
    return { denied: numbers[at + 2]!, updatedMs: numbers[at + 1]! };
  }

  forget(lo: number, hi: number): void {
    const at = this.#table.find(lo, hi || 1);
    if (at >= 0) this.#table.delete(at);
  }
}
