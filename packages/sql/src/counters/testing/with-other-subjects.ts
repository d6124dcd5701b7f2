import type { CounterStore, ResolvedLimit } from "sluice/store";

/** The same store for other subjects and request ids, so that tests can share it. `close` does nothing. */
export function withOtherSubjects(store: CounterStore, prefix: string): CounterStore {
  const other = (limits: readonly ResolvedLimit[]): readonly ResolvedLimit[] =>
    limits.map((limit) => ({ ...limit, subject: `${prefix}\n${limit.subject}` }));
  return {
    local: store.local,
    take: (limits, options) =>
      store.take(other(limits), options?.id === undefined ? options : { ...options, id: `${prefix}\n${options.id}` }),
    peek: (limits, options) => store.peek(other(limits), options),
    give: (receipt) => store.give(receipt),
    charge: (limits) => store.charge(other(limits)),
    block: (limits, forMs) => store.block(other(limits), forMs),
    reset: (limits) => store.reset(other(limits)),
    read: (limit) => store.read(other([limit])[0]!),
    close: () => undefined,
  };
}
