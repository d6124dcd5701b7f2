import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { createLimiter } from "../create-limiter.ts";
import type { CompiledLimit } from "../limits/compiled-limit.ts";
import type { Algorithm } from "../policy/policy.ts";
import { compileTestLimit, conversationStartMs, resolvedLimit, testWindow } from "../testing/index.ts";
import { MemoryCounters, type MemoryCountersOptions } from "./memory-counters.ts";

const algorithms = [
  "gcra",
  "token_bucket",
  "leaky_bucket",
  "fixed_window",
  "sliding_window",
  "sliding_log",
] as const satisfies readonly Algorithm[];

const minuteMs = 60_000;
const dayMs = 86_400_000;

function open(options: MemoryCountersOptions): { store: MemoryCounters; clock: ManualClock } {
  const clock = new ManualClock(conversationStartMs, 0);
  return { store: new MemoryCounters({ clock, ...options }), clock };
}

function createLimit(policy: string, algorithm: Algorithm, limit: number, perMs: number): CompiledLimit {
  return compileTestLimit({ algorithm, windows: [testWindow(limit, perMs)], policy });
}

function readRemaining(store: MemoryCounters, limit: CompiledLimit, subject: string): number {
  return store.peek([resolvedLimit(limit, subject)]).outcomes[0]!.remaining;
}

describe.each(algorithms)("an exhausted counter of %s", (algorithm) => {
  it("outlasts a flood of subjects that are exhausted at once and for longer, in the same memory", () => {
    const { store } = open({ maxCounters: 500 });
    const tight = createLimit("tight", algorithm, 5, minuteMs);
    const daily = createLimit("daily", algorithm, 1, dayMs);
    expect(store.take([resolvedLimit(tight, "mallory", 5)]).taken).toBe(true);
    for (let i = 0; i < 10_000; i++) store.take([resolvedLimit(daily, `made-up-${i}`)]);
    expect(store.stats.counters).toBeLessThanOrEqual(500);
    expect(store.take([resolvedLimit(tight, "mallory")]).taken).toBe(false);
  });

  it("outlasts a flood of its own limit, whose subjects are all exhausted", () => {
    const { store } = open({ maxCounters: 500 });
    const daily = createLimit("daily", algorithm, 1, dayMs);
    store.take([resolvedLimit(daily, "mallory")]);
    for (let i = 0; i < 10_000; i++) store.take([resolvedLimit(daily, `made-up-${i}`)]);
    expect(store.take([resolvedLimit(daily, "mallory")]).taken).toBe(false);
    expect(store.stats.refused).toBeGreaterThan(9_000);
    expect(store.stats.evictedLive).toBe(0);
  });

  it("is one too that is refused although a part of the limit is left", () => {
    const { store } = open({ maxCounters: 500 });
    const limit = createLimit("bytes", algorithm, 100, dayMs);
    store.take([resolvedLimit(limit, "mallory", 30)]);
    expect(store.take([resolvedLimit(limit, "mallory", 80)]).taken).toBe(false);
    for (let i = 0; i < 10_000; i++) store.take([resolvedLimit(limit, `made-up-${i}`, 50)]);
    expect(store.take([resolvedLimit(limit, "mallory", 80)]).taken).toBe(false);
  });

  it("goes when it is idle, and makes room for a new subject again", () => {
    const { store, clock } = open({ maxCounters: 500 });
    const daily = createLimit("daily", algorithm, 1, dayMs);
    for (let i = 0; i < 2_000; i++) store.take([resolvedLimit(daily, `made-up-${i}`)]);
    clock.advance(2 * dayMs);
    const refusedBefore = store.stats.refused;
    for (let i = 0; i < 400; i++) expect(store.take([resolvedLimit(daily, `late-${i}`)]).taken).toBe(true);
    for (let i = 0; i < 400; i++) expect(store.take([resolvedLimit(daily, `late-${i}`)]).taken).toBe(false);
    expect(store.stats.refused).toBe(refusedBefore);
  });

  it("that was given back may go like any other", () => {
    const { store } = open({ maxCounters: 500 });
    const daily = createLimit("daily", algorithm, 1, dayMs);
    for (let i = 0; i < 2_000; i++) {
      const { receipt } = store.take([resolvedLimit(daily, `made-up-${i}`)], { receipt: true });
      expect(store.give(receipt!)).toBe(true);
    }
    expect(store.stats.refused).toBe(0);
  });
});

describe("a flood in one limit", () => {
  it.each(algorithms)("of %s takes no counter from another that has fewer", (algorithm) => {
    const { store } = open({ maxCounters: 1000 });
    const quiet = createLimit("quiet", algorithm, 10, dayMs);
    const flooded = createLimit("flooded", algorithm, 3, dayMs);
    for (let i = 0; i < 100; i++) store.take([resolvedLimit(quiet, `u${i}`)]);
    for (let i = 0; i < 10_000; i++) {
      for (let turn = 0; turn < 1 + (i % 4); turn++) store.take([resolvedLimit(flooded, `made-up-${i}`)]);
    }
    for (let i = 0; i < 100; i++) expect(readRemaining(store, quiet, `u${i}`)).toBe(9);
  });

  it("leaves room for new subjects of the others, though all of its counters are exhausted", () => {
    const { store } = open({ maxCounters: 1000 });
    const flooded = createLimit("flooded", "gcra", 1, dayMs);
    const quiet = createLimit("quiet", "fixed_window", 10, dayMs);
    for (let i = 0; i < 10_000; i++) store.take([resolvedLimit(flooded, `made-up-${i}`)]);
    for (let i = 0; i < 90; i++) store.take([resolvedLimit(quiet, `u${i}`)]);
    for (let i = 0; i < 90; i++) expect(readRemaining(store, quiet, `u${i}`)).toBe(9);
  });

  it("of logs leaves bytes for counters of the others", () => {
    const { store } = open({ maxBytes: 1024 * 1024 });
    const flooded = createLimit("flooded", "sliding_log", 20, dayMs);
    const quiet = createLimit("quiet", "gcra", 10, dayMs);
    for (let i = 0; i < 40_000; i++) store.take([resolvedLimit(flooded, `made-up-${i % 4000}`)]);
    for (let i = 0; i < 2_000; i++) store.take([resolvedLimit(quiet, `u${i}`)]);
    for (let i = 0; i < 2_000; i++) expect(readRemaining(store, quiet, `u${i}`)).toBe(9);
    expect(store.stats.bytes).toBeLessThanOrEqual(1024 * 1024);
  });

  it("that fills a table to its last byte leaves a tenth of it to another limit of the same kind", () => {
    const { store } = open({ maxBytes: 256 * 1024 });
    const flooded = createLimit("flooded", "sliding_window", 1, dayMs);
    const quiet = createLimit("quiet", "sliding_window", 10, dayMs);
    for (let i = 0; i < 20_000; i++) store.take([resolvedLimit(flooded, `made-up-${i}`)]);
    for (let i = 0; i < 100; i++) store.take([resolvedLimit(quiet, `u${i}`)]);
    for (let i = 0; i < 100; i++) expect(readRemaining(store, quiet, `u${i}`)).toBe(9);
  });

  it("does not lift a limit that a request has to pass as well", () => {
    const { store } = open({ maxCounters: 500 });
    const byAddress = createLimit("by-address", "gcra", 1, dayMs);
    const byAccount = createLimit("by-account", "gcra", 5, dayMs);
    for (let i = 0; i < 2_000; i++) store.take([resolvedLimit(byAddress, `address-${i}`)]);
    let passed = 0;
    for (let i = 0; i < 50; i++) {
      const asked = [resolvedLimit(byAddress, `fresh-${i}`), resolvedLimit(byAccount, "victim")];
      if (store.take(asked).taken) passed += 1;
    }
    expect(passed).toBe(5);
  });
});

describe("whatever is asked of a full store", () => {
  it("no subject is let in twice within what its limit allows once", () => {
    const visit = fc.record({
      limit: fc.nat({ max: 2 * algorithms.length - 1 }),
      subject: fc.nat({ max: 400 }),
      waitMs: fc.constantFrom(0, 0, 0, 1, 50),
    });
    fc.assert(
      fc.property(fc.array(visit, { minLength: 600, maxLength: 2000, size: "max" }), (visits) => {
        const { store, clock } = open({ maxCounters: 60 });
        const limits = algorithms.flatMap((algorithm) => [
          createLimit(`${algorithm}-a`, algorithm, 3, dayMs),
          createLimit(`${algorithm}-b`, algorithm, 3, 7 * dayMs),
        ]);
        const exhausted = new Set<string>();
        for (const { limit, subject, waitMs } of visits) {
          clock.advance(waitMs);
          const cost = 1 + (subject % 3);
          const asked = resolvedLimit(limits[limit]!, `u${subject}`, cost);
          const key = `${limit} ${subject}`;
          const counted = store.stats.refused;
          const { taken, outcomes } = store.take([asked]);
          if (taken && exhausted.has(`${key} ${cost}`))
            expect.fail(`${key} passed at cost ${cost} after it was refused`);
          if (!taken) for (let more = cost; more <= 3; more++) exhausted.add(`${key} ${more}`);
          if (taken && outcomes[0]!.remaining === 0 && store.stats.refused === counted)
            for (let any = 1; any <= 3; any++) exhausted.add(`${key} ${any}`);
          if (store.stats.counters > 60) expect.fail("there are more counters than there may be");
        }
      }),
      { numRuns: 30 },
    );
  });
});

describe("a new subject for which there is no room", () => {
  function fullLimiter(onFailure: "open" | "closed" | "local") {
    const clock = new ManualClock(conversationStartMs, 0);
    const counters = new MemoryCounters({ clock, maxCounters: 100 });
    const policies = {
      policies: [
        {
          id: "once",
          limits: [{ by: ["user"], windows: ["1/d"] }],
          match: { endpoint: "/once" },
          on_failure: onFailure,
        },
        {
          id: "both",
          limits: [{ by: ["user"], windows: ["1/d", "2/h"] }],
          match: { endpoint: "/both" },
          on_failure: onFailure,
        },
      ],
    };
    const limiter = createLimiter({ clock, counters, policies });
    for (const endpoint of ["/once", "/both"])
      for (let i = 0; i < 400; i++) limiter.checkSync({ dimensions: { endpoint, user: `made-up-${i}` } });
    return { limiter, counters };
  }

  it.each(["/once", "/both"])("is denied by a policy that fails closed, at %s, and charged nothing", (endpoint) => {
    const { limiter, counters } = fullLimiter("closed");
    const { counters: before } = counters.stats;
    const decision = limiter.checkSync({ dimensions: { endpoint, user: "new" } });
    expect(decision).toMatchObject({ allowed: false, reason: "degraded", degraded: "storage_full" });
    expect(counters.stats.counters).toBe(before);
  });

  it.each(["open", "local"] as const)("passes uncounted if its policy fails %s", (onFailure) => {
    const { limiter, counters } = fullLimiter(onFailure);
    const { refused } = counters.stats;
    for (let i = 0; i < 3; i++)
      expect(limiter.checkSync({ dimensions: { endpoint: "/once", user: "new" } })).toMatchObject({ allowed: true });
    expect(counters.stats.refused).toBe(refused + 3);
  });

  it("is not reported as blocked if the block cannot be stored", async () => {
    const clock = new ManualClock(conversationStartMs, 0);
    const counters = new MemoryCounters({ clock, maxCounters: 100 });
    const limits = [{ by: ["user"], windows: ["10/d"], blockable: true }];
    const limiter = createLimiter({
      clock,
      counters,
      policies: { policies: [{ id: "p", limits, on_failure: "open" }] },
    });
    for (let i = 0; i < 80; i++) await limiter.block({ dimensions: { user: `u${i}` } }, dayMs);
    const more = async () => {
      for (let i = 80; i < 200; i++) await limiter.block({ dimensions: { user: `u${i}` } }, dayMs);
    };
    await expect(more()).rejects.toMatchObject({ code: "store_unavailable", reason: "storage_full" });
    for (let i = 0; i < 80; i++)
      expect(limiter.checkSync({ dimensions: { user: `u${i}` } })).toMatchObject({ allowed: false, reason: "blocked" });
  });
});
