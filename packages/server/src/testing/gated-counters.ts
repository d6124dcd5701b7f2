import { type CounterStore, MemoryCounters, type TakeOptions } from "sluice";

/** Counters elsewhere, that answer when they are told to. */
export interface GatedCounters extends CounterStore {
  /** How many takes have come. */
  readonly taken: number;
  /** What came with them, in order. */
  readonly options: readonly (TakeOptions | undefined)[];
  /** Lets all answers out, and those that follow. */
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
