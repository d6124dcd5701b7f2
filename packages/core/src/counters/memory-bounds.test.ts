import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { compileTestLimit, conversationStartMs, resolvedLimit, windowOf } from "../testing/index.ts";
import { MemoryCounters } from "./memory-counters.ts";

function open(options: { maxCounters?: number; maxBytes?: number }): { store: MemoryCounters; clock: ManualClock } {
  const clock = new ManualClock(conversationStartMs, 0);
  return { store: new MemoryCounters({ clock, ...options }), clock };
}

describe("memory is bounded", () => {
  it("by a number of counters: a flood of new subjects does not wash a throttled one free", () => {
    const { store, clock } = open({ maxCounters: 500 });
    const limit = compileTestLimit({ algorithm: "gcra", windows: [windowOf(10, 60_000)] });
    expect(store.take([resolvedLimit(limit, "mallory", 10)]).taken).toBe(true);
    for (let i = 0; i < 20_000; i++) {
      store.take([resolvedLimit(limit, `flood${i}`)]);
      if (i % 1000 === 0) clock.advance(1);
    }
    expect(store.stats.counters).toBe(500);
    expect(store.stats.evictedLive).toBeGreaterThan(19_000);
    expect(store.take([resolvedLimit(limit, "mallory")]).taken).toBe(false);
  });

  it("by bytes, logs included, which are the only counters that grow in place", () => {
    const maxBytes = 1024 * 1024;
    const { store, clock } = open({ maxBytes });
    const limit = compileTestLimit({ algorithm: "sliding_log", windows: [windowOf(10_000, 3_600_000)] });
    for (let i = 0; i < 60_000; i++) {
      store.take([resolvedLimit(limit, `u${i % 997}`)]);
      clock.advance(7);
    }
    expect(store.stats.bytes).toBeLessThanOrEqual(maxBytes);
    expect(store.stats.evictedLive).toBeGreaterThan(0);
  });

  it("without losing anything while there is room: idle counters go, and an idle counter is an absent one", () => {
    const { store, clock } = open({ maxCounters: 3000 });
    const limit = compileTestLimit({ algorithm: "gcra", windows: [windowOf(10, 1000)] });
    for (let i = 0; i < 50_000; i++) {
      clock.advance(1);
      expect(store.take([resolvedLimit(limit, `u${i}`, 10)]).taken).toBe(true);
    }
    expect(store.stats.evictedLive).toBe(0);
    expect(store.stats.counters).toBeLessThanOrEqual(3000);
  });

  it("for counters of every kind together", () => {
    const { store } = open({ maxCounters: 200 });
    const kinds = ["gcra", "fixed_window", "sliding_window", "sliding_log"] as const;
    const limits = kinds.map((algorithm) =>
      compileTestLimit({ algorithm, windows: [windowOf(10, 3_600_000)], policy: algorithm, blockForMs: 1000 }),
    );
    for (let i = 0; i < 5000; i++) store.take(limits.map((limit) => resolvedLimit(limit, `u${i}`)));
    expect(store.stats.counters).toBeLessThanOrEqual(200);
  });
});

describe("the clock", () => {
  it("that steps back goes on from where it was, and a step of more than a minute is counted", () => {
    const { store, clock } = open({});
    const limit = compileTestLimit({ algorithm: "gcra", windows: [windowOf(1, 1000)] });
    const take = (): boolean => store.take([resolvedLimit(limit, "u")]).taken;
    clock.advance(3_600_000);
    expect(take()).toBe(true);
    clock.advance(-3_600_000);
    expect(take()).toBe(false);
    clock.advance(1000);
    expect(take()).toBe(true);
    expect(store.stats.clockAnomalies).toBe(1);
  });

  it("that leaps forward gives one burst, not a leap's worth", () => {
    const { store, clock } = open({});
    const limit = compileTestLimit({ algorithm: "token_bucket", windows: [windowOf(1, 1000, 5)] });
    clock.advance(10 * 365 * 24 * 3_600_000);
    expect(store.take([resolvedLimit(limit, "u", 5)]).taken).toBe(true);
    expect(store.take([resolvedLimit(limit, "u", 1)]).taken).toBe(false);
  });

  it("whose wall is moved takes aligned windows along within a second", () => {
    const { store, clock } = open({});
    const limit = compileTestLimit({ algorithm: "fixed_window", windows: [windowOf(1, 3_600_000)] });
    expect(store.take([resolvedLimit(limit, "u")]).outcomes[0]!.resetAfterMs).toBe(3_600_000);
    clock.stepWall(1_800_000);
    clock.advance(1000);
    expect(store.peek([resolvedLimit(limit, "v")]).atMs).toBe(conversationStartMs + 1_801_000);
    expect(store.take([resolvedLimit(limit, "v")]).outcomes[0]!.resetAfterMs).toBe(1_799_000);
  });
});

describe("rounding", () => {
  it.each([30_000, 300_000, 333_333, 1_000_000])(
    "costs a busy counter of %i/s at most a thousandth, on the strict side",
    (rate) => {
      for (const uptimeMs of [0, 1e9, 8e9]) {
        const clock = new ManualClock(conversationStartMs, uptimeMs);
        const store = new MemoryCounters({ clock });
        const limit = compileTestLimit({ algorithm: "gcra", windows: [windowOf(rate, 1000, 10_000)] });
        let admitted = 0;
        const cost = 50;
        for (let ms = 0; ms < 2000; ms += 1) {
          while (store.take([resolvedLimit(limit, "u", cost)]).taken) admitted += cost;
          clock.advance(1);
        }
        const exact = 10_000 + rate * 1.999;
        expect(admitted).toBeLessThanOrEqual(exact + 1);
        expect(admitted).toBeGreaterThanOrEqual(exact * 0.999 - cost);
      }
    },
  );
});
