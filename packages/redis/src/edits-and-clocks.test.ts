import { startServer, type TestServer } from "@sluice/test-servers";
import { createLimiter, MemoryCounters, type ResolvedLimit } from "sluice";
import { compileTestLimit, resolvedLimit, windowOf } from "sluice/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { codeOf } from "./ask/window-code.ts";
import { createKeyNames } from "./place/key-names.ts";
import { RedisCounters } from "./redis-counters.ts";
import { scriptsOnTestTime, testTime } from "./testing/scripts-on-test-time.ts";

/** What lies in the store outlives the limit and the clock it was written by. */

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const names = createKeyNames("s");
const keyOf = ({ windows, subject }: ResolvedLimit): string => names.counter(codeOf(windows[0]!).code, subject);

let server: TestServer;
let store: RedisCounters;
let clock: ReturnType<typeof testTime>;

beforeAll(async () => {
  server = await startServer({ flavor: "valkey" });
});
afterAll(() => server.close());
beforeEach(async () => {
  await server.command("FLUSHALL");
  clock = testTime();
  store = new RedisCounters({ servers: server.url, deadlineMs: 5000, tune: scriptsOnTestTime(clock) });
  await store.connected();
});
afterEach(() => store.close());

async function lifeOf(limit: ResolvedLimit): Promise<number> {
  return Number(await server.command("PTTL", keyOf(limit)));
}

describe("a counter of a limit over weeks", () => {
  it.each([1, 11.9, 12.1, 20, 60, 400])("of %d days is idle for as long as its key lives", async (days) => {
    const take = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [windowOf(1000, days * dayMs)] }), "u");
    await store.take([take]);
    const lifeMs = await lifeOf(take);
    for (const share of [0.3, 0.6, 0.99]) {
      await server.command("DEL", keyOf(take));
      await store.take([take]);
      clock.advance(lifeMs * share);
      const { outcomes } = await store.take([take]);
      expect([share, outcomes[0]!.remaining]).toEqual([share, 999]);
    }
  });

  it("keeps the precision of fast rates", async () => {
    // A million a second for 25 days: what a single cost is worth is a thousand units of time.
    const limit = compileTestLimit({ algorithm: "token_bucket", windows: [windowOf(1e6, 1000, 1e12)] });
    for (let i = 0; i < 100; i++) await store.take([resolvedLimit(limit, "u", 100_000)]);
    const { outcomes } = await store.peek([resolvedLimit(limit, "u")]);
    expect(1e12 - outcomes[0]!.remaining).toBeLessThan(10_010_000);
    expect(1e12 - outcomes[0]!.remaining).toBeGreaterThanOrEqual(10_000_000);
  });

  it("is kept by an edit across the two forms, also within one call", async () => {
    const near = resolvedLimit(
      compileTestLimit({ algorithm: "token_bucket", windows: [windowOf(100, 30 * dayMs, 30)] }),
      "u",
      10,
    );
    const far = resolvedLimit(
      compileTestLimit({ algorithm: "token_bucket", windows: [windowOf(100, 30 * dayMs, 100)] }),
      "u",
      10,
    );
    await store.take([near], { receipt: true });
    const answers = await Promise.all([far, near].map((one) => store.take([one], { receipt: true })));
    expect(answers.map(({ outcomes }) => outcomes[0]!.remaining)).toEqual([80, 0]);
    expect((await store.take([far])).outcomes[0]!.remaining).toBe(60);
    expect((await store.take([near])).taken).toBe(false);
  });
});

describe("a clock that is set back by an hour", () => {
  it.each(["gcra", "fixed_window", "sliding_window", "sliding_log"] as const)(
    "keeps nobody out for longer than the window, by %s",
    async (algorithm) => {
      const take = resolvedLimit(compileTestLimit({ algorithm, windows: [windowOf(5, 10_000)] }), "u");
      clock.advance(2 * hourMs);
      for (let i = 0; i < 5; i++) await store.take([take]);
      clock.advance(-hourMs);
      const found = await store.take([take]);
      expect(found.taken).toBe(false);
      expect(found.outcomes[0]!.retryAfterMs).toBeLessThanOrEqual(20_000);
      clock.advance(found.outcomes[0]!.retryAfterMs);
      expect((await store.take([take])).taken).toBe(true);
    },
  );

  it("makes no block last longer than itself", async () => {
    const limit = compileTestLimit({ algorithm: "gcra", windows: [windowOf(1, 1000)], blockForMs: minuteMs });
    const take = resolvedLimit(limit, "u");
    await store.take([take]);
    await store.take([take]);
    clock.advance(-hourMs);
    expect((await store.take([take])).outcomes[0]!.retryAfterMs).toBe(minuteMs);
    clock.advance(minuteMs);
    expect((await store.take([take])).taken).toBe(true);
  });
});

describe("an edited limit", () => {
  it("that is lowered locks nobody out: the wait that is told is the wait, in both stores", async () => {
    const windows = (burst: number) => [windowOf(1000, hourMs, burst)];
    const before = resolvedLimit(compileTestLimit({ algorithm: "token_bucket", windows: windows(1000) }), "u", 1000);
    const after = resolvedLimit(compileTestLimit({ algorithm: "token_bucket", windows: windows(10) }), "u");
    for (const one of [new MemoryCounters({ clock }), store]) {
      for (const withReceipt of [false, true]) {
        await one.reset([before]);
        await one.take([before]);
        const told = await one.take([after], { receipt: withReceipt });
        expect(told.taken).toBe(false);
        clock.advance(told.outcomes[0]!.retryAfterMs);
        expect((await one.take([after], { receipt: withReceipt })).taken).toBe(true);
      }
    }
  });

  it.each([false, true])(
    "that is raised keeps its counter: the key outlives its state (receipt: %s)",
    async (receipt) => {
      const windows = (burst: number) => [windowOf(1000, hourMs, burst)];
      const small = resolvedLimit(compileTestLimit({ algorithm: "token_bucket", windows: windows(10) }), "u");
      const large = resolvedLimit(compileTestLimit({ algorithm: "token_bucket", windows: windows(1000) }), "u");
      await store.take([small], { receipt });
      for (let i = 0; i < 900; i++) {
        await store.take([large], { receipt });
        if (i % 50 > 0) continue;
        const [reading] = await store.read(large);
        expect(await lifeOf(large)).toBeGreaterThan(reading!.resetAfterMs);
      }
    },
  );

  it("that got another window charges a repeated id once all the same", async () => {
    const one = compileTestLimit({ algorithm: "gcra", windows: [windowOf(10, hourMs)] });
    const two = compileTestLimit({ algorithm: "gcra", windows: [windowOf(10, hourMs), windowOf(5, minuteMs)] });
    const options = { id: "x", fingerprint: "f" };
    await store.take([resolvedLimit(one, "u")], options);
    const again = await store.take([resolvedLimit(two, "u")], options);
    expect([again.taken, again.replayed, again.outcomes[0]!.fits]).toEqual([true, true, "now"]);
    expect((await store.read(resolvedLimit(one, "u")))[0]!.remaining).toBe(9);
  });
});

it.each(["memory", "redis"])(
  "tiers of one subject that requests name do not refill each other, in %s",
  async (where) => {
    const windows = (burst: number) => [{ limit: 1000, per: "1h", burst }];
    const limits = [
      { by: "ip", algorithm: "token_bucket", windows: windows(10), tiers: { pro: { windows: windows(1000) } } },
    ];
    const counters = where === "memory" ? new MemoryCounters({ clock }) : store;
    const limiter = createLimiter({ policies: { policies: [{ id: "p", limits }] }, counters, clock });
    let admitted = 0;
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 12; i++) {
        const { allowed } = await limiter.check({ dimensions: { ip: "1.1.1.1", tier: "pro" }, cost: 100 });
        if (allowed) admitted += 100;
      }
      const other = await limiter.check({ dimensions: { ip: "1.1.1.1" } });
      expect([other.allowed, other.retryAfterMs]).toEqual([false, 990 * 3600 + 3600]);
    }
    expect(admitted).toBe(1000);
  },
);

it("a life that is not whole milliseconds is rounded up, and nothing is charged in vain", async () => {
  const take = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [windowOf(10, hourMs)] }), "u");
  expect((await store.take([take], { id: "x", fingerprint: "f", idTtlMs: 1500.5 })).taken).toBe(true);
  expect((await store.take([take], { id: "x", fingerprint: "f", idTtlMs: 1500.5 })).replayed).toBe(true);
});

it("debt is paid off by time alone, and no clamp forgives it, by either script", async () => {
  const limit = compileTestLimit({ algorithm: "gcra", windows: [windowOf(10, 10_000)] });
  const take = resolvedLimit(limit, "u");
  await store.charge([{ ...take, cost: 10 }]);
  await store.charge([{ ...take, cost: 7 }]);
  for (const receipt of [false, true]) {
    const { taken, outcomes } = await store.take([take], { receipt });
    expect([taken, outcomes[0]!.retryAfterMs]).toEqual([false, 8000]);
  }
  await store.charge([{ ...take, cost: 100 }]);
  expect((await store.take([take])).outcomes[0]!.retryAfterMs, "one capacity of debt at most").toBe(11_000);
  clock.advance(11_000);
  expect((await store.take([take])).taken).toBe(true);
});

it("what is taken around the end of the circle can be given back", async () => {
  const circleMs = 2 ** 33;
  clock.advance(circleMs - (clock.epochMs() % circleMs) - 1_800_000 + 0.123);
  let given = 0;
  for (let i = 0; i < 200; i++) {
    clock.advance(1.237);
    const limit = compileTestLimit({ algorithm: "gcra", windows: [windowOf(7, hourMs)], policy: `p${i}` });
    const { receipt } = await store.take([resolvedLimit(limit, "u", 5)], { receipt: true });
    if (await store.give(receipt!)) given += 1;
  }
  expect(given).toBe(200);
});

it("a key without an end is healed for as long as any counter of the call may need", async () => {
  const short = resolvedLimit(
    compileTestLimit({ algorithm: "gcra", windows: [windowOf(1000, 1000)], policy: "a" }),
    "u",
  );
  const long = resolvedLimit(
    compileTestLimit({ algorithm: "gcra", windows: [windowOf(10, 20 * hourMs)], policy: "b" }),
    "u",
    5,
  );
  await store.take([short]);
  await store.take([long]);
  await server.command("PERSIST", keyOf(long));
  for (let i = 0; i < 200 && (await lifeOf(long)) < 0; i++) {
    clock.advance(0.001);
    await Promise.all([store.take([short]), store.take([{ ...long, cost: 10 }])]);
  }
  const [reading] = await store.read(long);
  expect(await lifeOf(long)).toBeGreaterThan(reading!.resetAfterMs);
});
