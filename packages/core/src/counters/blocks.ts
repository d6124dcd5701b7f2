import type { CompiledLimit } from "../limits/compiled-limit.ts";
import type { CounterOwners } from "./counter-owners.ts";
import { type CounterBudget, CounterTable } from "./counter-table.ts";
import type { Hash64 } from "./hash.ts";

/**
 * When blocks end, by limit and subject. A denial begins one (`block_for`), and so does `block`. A subject is given by
 * its hash.
 */
export class Blocks {
  readonly #table: CounterTable;
  readonly #owners: CounterOwners;

  constructor(budget: CounterBudget, owners: CounterOwners) {
    this.#table = budget.watch(new CounterTable(1, budget));
    this.#owners = owners;
  }

  /** How long a block still lasts; 0 if there is none. */
  leftMs(limit: CompiledLimit, subject: Hash64, nowMs: number): number {
    if (this.#table.count === 0) return 0;
    const at = this.#find(limit, subject);
    return at < 0 ? 0 : Math.max(Math.ceil(this.#table.numbers[at]! - nowMs), 0);
  }

  /**
   * Never shortens an earlier block. False if there is no room for one. This clock never runs back, so a block never
   * lasts longer than it was begun for.
   */
  begin(limit: CompiledLimit, subject: Hash64, untilMs: number, nowMs: number): boolean {
    const foundAt = this.#find(limit, subject);
    const lo = subject.lo ^ limit.hashLo;
    const hi = subject.hi ^ limit.hashHi;
    const owner = this.#owners.find(limit.identity, limit.hashLo);
    const at = foundAt >= 0 ? foundAt : this.#table.insert(lo, hi, nowMs, owner);
    if (at < 0) return false;
    const { numbers } = this.#table;
    this.#table.setLeft(at, 0);
    numbers[at] = foundAt >= 0 ? Math.max(numbers[at]!, untilMs) : untilMs;
    return true;
  }

  forget(limit: CompiledLimit, subject: Hash64): void {
    const at = this.#find(limit, subject);
    if (at >= 0) this.#table.delete(at);
  }

  #find(limit: CompiledLimit, subject: Hash64): number {
    return this.#table.find(subject.lo ^ limit.hashLo, subject.hi ^ limit.hashHi || 1);
  }
}
