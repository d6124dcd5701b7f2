import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import type { CompiledLimit } from "../limits/compiled-limit.ts";
import type { Algorithm } from "../policy/policy.ts";
import { compileTestLimit, conversationStartMs, resolvedLimit, testWindow } from "../testing/index.ts";
import type { ResolvedLimit } from "./counter-store.ts";
import { MemoryCounters, type MemoryCountersOptions } from "./memory-counters.ts";

/**
 * An idle counter may be dropped for a new one. One request may need both: its idle counters must not make room for its
 * new ones, or what it takes from them is lost.
 */
const kinds = ["gcra", "fixed_window", "sliding_window", "sliding_log"] as const satisfies readonly Algorithm[];

function createLimits(
  name: string,
  algorithm: Algorithm,
  perMs: number,
  onFailure: "open" | "closed",
): CompiledLimit[] {
  const windows = [testWindow(5, perMs)];
  return [1, 2, 3, 4, 5, 6].map((i) => compileTestLimit({ algorithm, windows, policy: `${name}-${i}`, onFailure }));
}

/** Takes from idle counters and new ones at once, and counts the idle ones that were not charged. */
function countLost(algorithm: Algorithm, options: MemoryCountersOptions): number {
  let lost = 0;
  for (let i = 0; i < 500; i++) {
    // Which counters meet in a table depends on the names of their limits.
    const old = createLimits(`old-${i}`, algorithm, 1_000, "open");
    const fresh = createLimits(`fresh-${i}`, algorithm, 60_000, "open");
    const clock = new ManualClock(conversationStartMs, 0);
    const store = new MemoryCounters({ clock, ...options });
    const idle = old.map((limit) => resolvedLimit(limit, "user"));
    store.take(idle);
    clock.advance(2_000);
    store.take([...idle, ...fresh.map((limit) => resolvedLimit(limit, "user"))]);
    lost += store.peek(idle).outcomes.filter(({ remaining }) => remaining !== 4).length;
  }
  return lost;
}

describe.each(kinds)("idle counters of %s", (algorithm) => {
  it("are charged by a request that needs new counters as well", () => {
    expect(countLost(algorithm, {})).toBe(0);
  });

  it("are charged by a request that needs more new counters than memory has room for", () => {
    expect(countLost(algorithm, { maxCounters: 10 })).toBe(0);
  });

  it("are left as they were by a request for whose new counters there is no room, if it fails closed", () => {
    const clock = new ManualClock(conversationStartMs, 0);
    const store = new MemoryCounters({ clock, maxCounters: 10 });
    const closed = (name: string): ResolvedLimit[] =>
      createLimits(name, algorithm, 1_000, "closed").map((limit) => resolvedLimit(limit, "user"));
    const idle = closed("old");
    store.take(idle);
    clock.advance(2_000);
    expect(() => store.take([...idle, ...closed("fresh")])).toThrow(
      expect.objectContaining({ reason: "storage_full" }),
    );
    expect(store.peek(idle).outcomes.map(({ remaining }) => remaining)).toEqual([5, 5, 5, 5, 5, 5]);
    store.take(idle);
    expect(store.peek(idle).outcomes.map(({ remaining }) => remaining)).toEqual([4, 4, 4, 4, 4, 4]);
  });
});

describe("counters in full memory", () => {
  it.each(["before", "behind"])(
    "do not go for a block that a shadow limit %s them begins in the same request",
    (where) => {
      const clock = new ManualClock(conversationStartMs, 0);
      const store = new MemoryCounters({ clock, maxCounters: 10 });
      const shadow = compileTestLimit({
        algorithm: "gcra",
        windows: [testWindow(1, 3_600_000)],
        policy: "shadow",
        blockForMs: 60_000,
      });
      const limits = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((i) =>
        resolvedLimit(
          compileTestLimit({ algorithm: "gcra", windows: [testWindow(100, 3_600_000)], policy: `enforced-${i}` }),
          "user",
        ),
      );
      const looked = { ...resolvedLimit(shadow, "user"), group: 1 };
      const request = where === "before" ? [looked, ...limits] : [...limits, looked];
      store.take(request);
      expect(store.stats.counters).toBe(10);
      expect(store.take(request).outcomes.filter(({ fits }) => fits !== "now")).toHaveLength(1);
      expect(store.peek(limits).outcomes.map(({ remaining }) => remaining)).toEqual(limits.map(() => 98));
    },
  );
});
