import { type CounterStore, MemoryCounters } from "sluice";
import type { TakeOptions } from "sluice/store";

/** Remote counters that answer when a test says so. */
export interface GatedCounters extends CounterStore {
  /** How many takes have arrived. */
  readonly taken: number;
  /** Their contents, in order. */
  readonly options: readonly (TakeOptions | undefined)[];
  /** Releases all answers, and every later one. */
  open(): void;
}

export function createGatedCounters(): GatedCounters {
  const store = new MemoryCounters();
  const options: (TakeOptions | undefined)[] = [];
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    local: false,
    async take(limits, asked) {
      options.push(asked);
      await gate;
      return store.take(limits, asked);
    },
    peek: async (limits) => store.peek(limits),
    give: async (receipt) => store.give(receipt),
    charge: async (limits) => store.charge(limits),
    block: async (limits, forMs) => store.block(limits, forMs),
    reset: async (limits) => store.reset(limits),
    read: async (limit) => store.read(limit),
    close: async () => store.close(),
    options,
    get taken(): number {
      return options.length;
    },
    open: () => open(),
  };
}
