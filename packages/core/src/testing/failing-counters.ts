import type { CounterStore } from "../counters/counter-store.ts";
import { StoreUnavailable } from "../counters/store-unavailable.ts";

/**
 * Remote counters that are unavailable: for testing what policies say about an outage. Each call rejects with `error`.
 */
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
