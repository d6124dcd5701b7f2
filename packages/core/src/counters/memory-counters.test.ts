import { describe, it } from "vitest";
import { ManualClock } from "../clock.ts";
import {
  centralCountersContract,
  conversationStartMs,
  counterStoreContract,
  distinctContract,
  holdsContract,
} from "../testing/index.ts";
import { MemoryCounters } from "./memory-counters.ts";

describe("counters in memory keep the contract", () => {
  for (const promise of [...counterStoreContract, ...centralCountersContract, ...holdsContract, ...distinctContract]) {
    it(promise.name, () =>
      promise.run(() => {
        const clock = new ManualClock(conversationStartMs, 12_345);
        return { store: new MemoryCounters({ clock }), advance: (ms) => clock.advance(ms) };
      }),
    );
  }
});
