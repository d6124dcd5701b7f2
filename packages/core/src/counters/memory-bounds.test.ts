import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { compileTestLimit, conversationStartMs, resolvedLimit, testWindow } from "../testing/index.ts";
import { MemoryCounters } from "./memory-counters.ts";

function open(options: { maxCounters?: number; maxBytes?: number }): { store: MemoryCounters; clock: ManualClock } {
  const clock = new ManualClock(conversationStartMs, 0);
  return { store: new MemoryCounters({ clock, ...options }), clock };
}

describe("memory is bounded", () => {
  it.each(["gcra", "fixed_window", "sliding_window", "sliding_log"] as const)(
    "by a number of counters: a flood of new subjects does not wash a throttled one of %s free",
    (algorithm) => {
      const { store, clock } = open({ maxCounters: 500 });
      const limit = compileTestLimit({ algorithm, windows: [testWindow(5, 60_000)] });
      // A slower limit, whose counters take longer to be idle, floods too.
      const slow = compileTestLimit({ algorithm, windows: [testWindow(1000, 86_400_000)], policy: "slow" });
      expect(store.take([resolvedLimit(limit, "mallory", 5)]).taken).toBe(true);
      for (let i = 0; i < 20_000; i++) {
        store.take([resolvedLimit(i % 2 === 0 ? limit : slow, `flood${i}`)]);
        if (i % 1000 === 0) clock.advance(1);
      }
      expect(store.stats.counters).toBeLessThanOrEqual(500);
      expect(store.stats.evictedLive).toBeGreaterThan(19_000);
      expect(store.take([resolvedLimit(limit, "mallory")]).taken).toBe(false);
    },
  );

  it("by dropping idle counters first, of whatever kind, before any that lives", () => {
    const { store, clock } = open({ maxCounters: 1000 });
    const brief = compileTestLimit({ algorithm: "fixed_window", windows: [testWindow(10, 1000)], policy: "brief" });
    const long = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 86_400_000)], policy: "long" });
    for (let i = 0; i < 850; i++) store.take([resolvedLimit(long, `u${i}`)]);
    for (let i = 0; i < 5000; i++) {
      store.take([resolvedLimit(brief, `v${i}`)]);
      // Twenty live at a time; the others are idle.
      clock.advance(50);
    }
    expect(store.stats.evictedLive).toBe(0);
    for (let i = 0; i < 850; i++) expect(store.peek([resolvedLimit(long, `u${i}`)]).outcomes[0]!.remaining).toBe(9);
  });

  it("with blocks of shadow policies too, which disturb no other counter", () => {
    const { store } = open({ maxCounters: 1100 });
    const enforced = compileTestLimit({
      algorithm: "gcra",
      windows: [testWindow(1000, 86_400_000)],
      policy: "enforced",
    });
    const shadow = compileTestLimit({
      algorithm: "gcra",
      windows: [testWindow(1, 86_400_000)],
      policy: "shadow",
      blockForMs: 86_400_000,
    });
    for (let i = 0; i < 6000; i++) {
      const cost = 1 + (i % 100);
      const asked = [resolvedLimit(shadow, `u${i}`, 1, 1), resolvedLimit(enforced, `u${i}`, cost)];
      store.take(asked);
      store.take(asked);
    }
    // Counters may have been dropped for lack of room, but none holds what another subject took.
    for (let i = 0; i < 6000; i++) {
      const { remaining } = store.peek([resolvedLimit(enforced, `u${i}`)]).outcomes[0]!;
      const cost = 1 + (i % 100);
      expect([1000, 1000 - cost, 1000 - 2 * cost]).toContain(remaining);
    }
  });

  it("without leaking the weight of logs: charges and give-backs are accounted for", () => {
    const { store, clock } = open({});
    const limit = compileTestLimit({ algorithm: "sliding_log", windows: [testWindow(1000, 1000)] });
    const empty = store.stats.bytes;
    for (let i = 0; i < 1000; i++) {
      store.charge([resolvedLimit(limit, "u")]);
      const { receipt } = store.take([resolvedLimit(limit, "u")], { receipt: true });
      if (receipt !== undefined) store.give(receipt);
      clock.advance(7);
    }
    clock.advance(2000);
    store.take([resolvedLimit(limit, "u")]);
    expect(store.stats.bytes).toBeLessThanOrEqual(empty + 256);
  });

  it("by bytes, logs included, which are the only counters that grow in place", () => {
    const maxBytes = 1024 * 1024;
    const { store, clock } = open({ maxBytes });
    const limit = compileTestLimit({ algorithm: "sliding_log", windows: [testWindow(10_000, 3_600_000)] });
    for (let i = 0; i < 60_000; i++) {
      store.take([resolvedLimit(limit, `u${i % 997}`)]);
      clock.advance(7);
    }
    expect(store.stats.bytes).toBeLessThanOrEqual(maxBytes);
    expect(store.stats.evictedLive).toBeGreaterThan(0);
  });

  it("without losing anything while there is room: idle counters go, and an idle counter is an absent one", () => {
    const { store, clock } = open({ maxCounters: 3000 });
    const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 1000)] });
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
      compileTestLimit({ algorithm, windows: [testWindow(10, 3_600_000)], policy: algorithm, blockForMs: 1000 }),
    );
    for (let i = 0; i < 5000; i++) store.take(limits.map((limit) => resolvedLimit(limit, `u${i}`)));
    expect(store.stats.counters).toBeLessThanOrEqual(200);
  });
});

describe("debt", () => {
  it("of a one-off quota is one capacity at most, so that a raised one is not swallowed by it", () => {
    const { store } = open({});
    const quota = (limit: number) =>
      compileTestLimit({ algorithm: "gcra", windows: [{ limit, per: { kind: "never" }, burst: limit }] });
    for (let i = 0; i < 10; i++) store.charge([resolvedLimit(quota(10), "u", 100)]);
    expect(store.peek([resolvedLimit(quota(30), "u", 1)]).outcomes[0]!.remaining).toBe(10);
  });
});

describe("the clock", () => {
  it("that steps back continues from where it was, and a step of more than a minute is counted", () => {
    const { store, clock } = open({});
    const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1, 1000)] });
    const take = (): boolean => store.take([resolvedLimit(limit, "u")]).taken;
    clock.advance(3_600_000);
    expect(take()).toBe(true);
    clock.advance(-3_600_000);
    expect(take()).toBe(false);
    clock.advance(1000);
    expect(take()).toBe(true);
    expect(store.stats.clockAnomalies).toBe(1);
    clock.stepWall(-3_600_000);
    clock.advance(1000);
    take();
    expect(store.stats.clockAnomalies).toBe(2);
  });

  it("that leaps forward gives one burst, not a leap's worth", () => {
    const { store, clock } = open({});
    const limit = compileTestLimit({ algorithm: "token_bucket", windows: [testWindow(1, 1000, 5)] });
    clock.advance(10 * 365 * 24 * 3_600_000);
    expect(store.take([resolvedLimit(limit, "u", 5)]).taken).toBe(true);
    expect(store.take([resolvedLimit(limit, "u", 1)]).taken).toBe(false);
  });

  it("whose wall is moved takes aligned windows along within a second", () => {
    const { store, clock } = open({});
    const limit = compileTestLimit({ algorithm: "fixed_window", windows: [testWindow(1, 3_600_000)] });
    expect(store.take([resolvedLimit(limit, "u")]).outcomes[0]!.resetAfterMs).toBe(3_600_000);
    clock.stepWall(1_800_000);
    clock.advance(1000);
    expect(store.peek([resolvedLimit(limit, "v")]).atMs).toBe(conversationStartMs + 1_801_000);
    expect(store.take([resolvedLimit(limit, "v")]).outcomes[0]!.resetAfterMs).toBe(1_799_000);
  });
});

describe("the wall clock moved", () => {
  it("leaves the end of a window in use where it is, even for takes after the step", () => {
    const { store, clock } = open({});
    const limit = compileTestLimit({ algorithm: "fixed_window", windows: [testWindow(10, 3_600_000)] });
    store.take([resolvedLimit(limit, "u", 5)]);
    clock.stepWall(60_000);
    clock.advance(1000);
    expect(store.take([resolvedLimit(limit, "u", 1)]).outcomes[0]!.resetAfterMs).toBe(3_599_000);
    expect(store.take([resolvedLimit(limit, "v", 1)]).outcomes[0]!.resetAfterMs).toBe(3_539_000);
  });

  it.each(["fixed_window", "sliding_window"] as const)(
    "neither gives a subject of a %s anything nor keeps it out for longer",
    (algorithm) => {
      for (const stepMs of [-7_200_000, -1_800_000, -60, 60, 1000, 600_000, 3_600_000]) {
        const { store, clock } = open({});
        const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 3_600_000)] });
        clock.advance(1_200_000);
        expect(store.take([resolvedLimit(limit, "u", 10)]).taken).toBe(true);
        const unmoved = store.peek([resolvedLimit(limit, "u", 1)]).outcomes[0]!.retryAfterMs;
        clock.stepWall(stepMs);
        clock.advance(1000);
        expect(store.take([resolvedLimit(limit, "u", 9)]).taken).toBe(false);
        const { retryAfterMs } = store.peek([resolvedLimit(limit, "u", 1)]).outcomes[0]!;
        expect(retryAfterMs).toBe(unmoved - 1000);
        clock.advance(retryAfterMs - 1);
        expect(store.peek([resolvedLimit(limit, "u", 1)]).outcomes[0]!.fits).toBe("later");
        clock.advance(1);
        expect(store.take([resolvedLimit(limit, "u", 1)]).taken).toBe(true);
      }
    },
  );
});

describe("rounding", () => {
  it.each([30_000, 300_000, 333_333, 1_000_000])(
    "costs a busy counter of %i/s at most a thousandth, on the strict side",
    (rate) => {
      for (const uptimeMs of [0, 1e9, 8e9]) {
        const clock = new ManualClock(conversationStartMs, uptimeMs);
        const store = new MemoryCounters({ clock });
        const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(rate, 1000, 10_000)] });
        let admitted = 0;
        const cost = rate === 333_333 ? 1 : 50;
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
