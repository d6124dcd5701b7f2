import { decideDistinct } from "../algorithms/distinct.ts";
import { DistinctValues, valueFrom } from "../algorithms/distinct-values.ts";
import type { WindowVerdict, WritableVerdict } from "../algorithms/window-verdict.ts";
import type { CompiledWindow } from "../limits/compiled-limit.ts";
import { type CounterBudget, CounterTable } from "./counter-table.ts";
import { type Hash64, hashText } from "./hash.ts";

/** The values of one subject, and the end of the window that they were seen in. */
interface Seen {
  values: DistinctValues;
  endMs: number;
}

/** Separates hashes of values from those of subjects. */
const valueKind = 0x5e;

/** Windows of distinct values, in a table of two words: the end of the window, and the index of its values. */
export class DistinctCounters {
  readonly table: CounterTable;
  readonly #budget: CounterBudget;
  readonly #seen: (Seen | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #hash: Hash64 = { lo: 0, hi: 0 };
  #bytes = 0;

  constructor(budget: CounterBudget) {
    this.#budget = budget;
    this.table = budget.watch(new CounterTable(2, budget, (numbers, at) => this.#forget(numbers[at + 1]!)));
  }

  get hasRoom(): boolean {
    return this.#budget.leavesRoom(this.#bytes);
  }

  /** 1 if the value was not seen in this window yet, else 0: what it would add to the count. */
  worth(at: number, value: string, nowMs: number): number {
    const seen = this.#find(at);
    return seen !== undefined && seen.endMs > nowMs && seen.values.has(this.#hashValue(value)) ? 0 : 1;
  }

  verdict(
    window: CompiledWindow,
    at: number,
    worth: number,
    nowMs: number,
    originMs: number,
    into?: WritableVerdict,
  ): WindowVerdict {
    const seen = this.#find(at);
    return decideDistinct(window, seen?.endMs ?? 0, seen?.values.count ?? 0, worth > 0, nowMs, originMs, into);
  }

  /** How many values were seen in the window that lasts. */
  count(at: number, nowMs: number): number {
    const seen = this.#find(at);
    return seen === undefined || seen.endMs <= nowMs ? 0 : seen.values.count;
  }

  /** For a counter that was placed. */
  create(): number {
    const index = this.#free.pop() ?? this.#seen.length;
    const values = new DistinctValues();
    this.#seen[index] = { values, endMs: 0 };
    this.#weigh(values.bytes);
    return index;
  }

  /** Notes the value, in the window that ends at `endMs`. */
  add(at: number, value: string, endMs: number, nowMs: number): void {
    const seen = this.#find(at);
    if (seen === undefined) return;
    const before = seen.values.bytes;
    if (seen.endMs <= nowMs) seen.values = new DistinctValues();
    seen.values.add(this.#hashValue(value));
    seen.endMs = endMs;
    this.table.numbers[at] = endMs;
    this.#weigh(seen.values.bytes - before);
  }

  /** Values grow in place: if they outgrow the bound, some counters go. */
  trim(nowMs: number): void {
    for (let dropped = 0; dropped < 4 && !this.hasRoom && this.table.count > 1; dropped++)
      if (!this.table.evictWithin(0, nowMs)) return;
  }

  #find(at: number): Seen | undefined {
    return at < 0 ? undefined : this.#seen[this.table.numbers[at + 1]!];
  }

  #hashValue(value: string): number {
    hashText(value, this.#hash, valueKind);
    return valueFrom(this.#hash.lo, this.#hash.hi);
  }

  #forget(index: number): void {
    const seen = this.#seen[index];
    if (seen === undefined) return;
    this.#weigh(-seen.values.bytes);
    this.#seen[index] = undefined;
    this.#free.push(index);
  }

  #weigh(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.bytes += bytes;
  }
}
