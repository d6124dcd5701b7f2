import type { CounterStore } from "../counters/counter-store.ts";
import { StoreUnavailable } from "../counters/store-unavailable.ts";

/** Counters elsewhere that cannot be asked: for trying what policies say of an outage. `error` is what each call rejects with. */
export function failingCounters(
  error: () => unknown = () => new StoreUnavailable("storage_unavailable"),
): CounterStore {
  const fail = (): Promise<never> => Promise.reject(error());
  return {
    local: false,
    take: fail,
    peek: fail,
    give: fail,
    charge: fail,
    block: fail,
    reset: fail,
    read: fail,
    close(): void {},
  };
}
