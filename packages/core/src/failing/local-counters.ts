import type { Clock } from "../clock.ts";
import type { PeekOptions, Receipt, ResolvedLimit, TakeAnswer, TakeOptions } from "../counters/counter-store.ts";
import { MemoryCounters } from "../counters/memory-counters.ts";

const maxCounters = 200_000;
const maxBytes = 64 * 1024 * 1024;

/** Distinguishes receipts of these counters from the store's. */
const prefix = "local:";

/**
 * This node's own counters, for policies that fail `local`. They and the store know nothing of each other, so the store
 * resumes where it was. They last from one outage to the next: a flapping store does not hand out its local share anew
 * each time.
 */
export class LocalCounters {
  readonly #counters: MemoryCounters;

  constructor(clock: Clock) {
    this.#counters = new MemoryCounters({ clock, maxCounters, maxBytes });
  }

  take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer {
    const answer = this.#counters.take(limits, options);
    return answer.receipt === undefined ? answer : { ...answer, receipt: prefix + answer.receipt };
  }

  peek(limits: readonly ResolvedLimit[], options?: PeekOptions): TakeAnswer {
    return this.#counters.peek(limits, options);
  }

  give(receipt: Receipt): boolean {
    return this.#counters.give(receipt.slice(prefix.length));
  }

  charge(limits: readonly ResolvedLimit[]): void {
    this.#counters.charge(limits);
  }

  reset(limits: readonly ResolvedLimit[]): void {
    this.#counters.reset(limits);
  }
}

export function isLocalReceipt(receipt: Receipt): boolean {
  return receipt.startsWith(prefix);
}
