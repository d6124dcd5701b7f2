import { describe, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { MemoryCounters } from "../counters/memory-counters.ts";
import {
  centralCountersContract,
  conversationStartMs,
  counterStoreContract,
  distinctContract,
  holdsContract,
} from "../testing/index.ts";
import { LeasedCounters } from "./leased-counters.ts";

/** Costs that grow while the subject is denied: when they may be retried is known only roughly without asking. */
const growing = ["conversation: sliding window, 10/10s", "conversation: sliding log, 5/10s"];

describe("leased counters without hot ones keep the contract of their central store", () => {
  for (const promise of [...counterStoreContract, ...centralCountersContract, ...holdsContract, ...distinctContract]) {
    it(promise.name, () =>
      promise.run(() => {
        const clock = new ManualClock(conversationStartMs, 12_345);
        const maxDenialMs = growing.includes(promise.name) ? 0 : 1000;
        const options = { clock, maxDenialMs, hotPerSecond: Number.POSITIVE_INFINITY };
        return {
          store: new LeasedCounters(new MemoryCounters({ clock }), options),
          advance: (ms) => clock.advance(ms),
        };
      }),
    );
  }
});
