import { startServer, type TestServer } from "@sluice/test-servers";
import { createLimiter, MemoryCounters } from "sluice";
import type { ResolvedLimit } from "sluice/store";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { blockKey } from "./ask/encode-call.ts";
import { findCode } from "./ask/window-code.ts";
import { createKeyNames } from "./place/key-names.ts";
import { RedisCounters } from "./redis-counters.ts";
import { scriptsOnTestTime, testTime } from "./testing/scripts-on-test-time.ts";

/** What lies in the store outlives the limit and the clock it was written by. */

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const names = createKeyNames("s");
const counterKey = ({ windows, subject }: ResolvedLimit): string => names.counter(findCode(windows[0]!).code, subject);

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

async function readLifetime(limit: ResolvedLimit): Promise<number> {
  return Number(await server.command("PTTL", counterKey(limit)));
}

describe("a counter of a limit over weeks", () => {
  it.each([1, 11.9, 12.1, 20, 60, 400])("of %d days is idle for as long as its key lives", async (days) => {
    const take = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(1000, days * dayMs)] }), "u");
    await store.take([take]);
    const lifeMs = await readLifetime(take);
    for (const share of [0.3, 0.6, 0.99]) {
      await server.command("DEL", counterKey(take));
      await store.take([take]);
      clock.advance(lifeMs * share);
      const { outcomes } = await store.take([take]);
      expect([share, outcomes[0]!.remaining]).toEqual([share, 999]);
    }
  });

  it("keeps the precision of fast rates", async () => {
    // A million a second for 25 days: a single cost is worth a thousand units of time.
    const limit = compileTestLimit({ algorithm: "token_bucket", windows: [testWindow(1e6, 1000, 1e12)] });
    for (let i = 0; i < 100; i++) await store.take([resolvedLimit(limit, "u", 100_000)]);
    const { outcomes } = await store.peek([resolvedLimit(limit, "u")]);
    expect(1e12 - outcomes[0]!.remaining).toBeLessThan(10_010_000);
    expect(1e12 - outcomes[0]!.remaining).toBeGreaterThanOrEqual(10_000_000);
  });

  it("survives an edit across the two forms, even within one call", async () => {
    const near = resolvedLimit(
      compileTestLimit({ algorithm: "token_bucket", windows: [testWindow(100, 30 * dayMs, 30)] }),
      "u",
      10,
    );
    const far = resolvedLimit(
      compileTestLimit({ algorithm: "token_bucket", windows: [testWindow(100, 30 * dayMs, 100)] }),
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

describe("the end of a counter's key", () => {
  const limits = ["one", "two"].map((policy) =>
    resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, minuteMs)], policy }), "u"),
  );
  const lifeMs = 4 * minuteMs;

  /** A unit is worth six seconds: after seven the counter is idle. */
  async function takeTwice(count: number, beforeMinuteMs: number): Promise<number> {
    const taken = limits.slice(0, count);
    clock.advance(minuteMs - ((clock.epochMs() % 2 ** 33) % minuteMs) - beforeMinuteMs);
    await store.take(taken);
    expect(await readLifetime(limits[0]!)).toBeGreaterThan(lifeMs - 10_000);
    await server.command("PEXPIRE", counterKey(limits[0]!), 100_000);
    clock.advance(7000);
    expect((await store.take(taken)).outcomes[0]!.remaining).toBe(9);
    return readLifetime(limits[0]!);
  }

  it.each([1, 2])("is put off when an idle counter goes over into the next minute, of %d limits", async (count) => {
    expect(await takeTwice(count, 10_000)).toBeGreaterThan(lifeMs - 10_000);
  });

  it.each([1, 2])("is left alone within a minute, of %d limits", async (count) => {
    expect(await takeTwice(count, 30_000)).toBeLessThanOrEqual(100_000);
  });
});

describe("a clock that is set back by an hour", () => {
  it.each(["gcra", "fixed_window", "sliding_window", "sliding_log"] as const)(
    "keeps no subject out for longer than the window, by %s",
    async (algorithm) => {
      const take = resolvedLimit(compileTestLimit({ algorithm, windows: [testWindow(5, 10_000)] }), "u");
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

  it("keeps no subject out for longer even if another limit of the request denies", async () => {
    const take = (policy: string): ResolvedLimit =>
      resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(5, 10_000)], policy }), "u");
    const [ahead, usedUp] = [take("ahead"), take("used-up")];
    clock.advance(2 * hourMs);
    for (let i = 0; i < 5; i++) await store.take([ahead]);
    clock.advance(-hourMs);
    for (let i = 0; i < 5; i++) await store.take([usedUp]);
    expect((await store.take([ahead, usedUp])).taken).toBe(false);
    clock.advance(10_000);
    expect((await store.take([ahead, usedUp])).taken).toBe(true);
  });

  it("makes no block last longer than itself", async () => {
    const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1, 1000)], blockForMs: minuteMs });
    const take = resolvedLimit(limit, "u");
    await store.take([take]);
    await store.take([take]);
    clock.advance(-hourMs);
    expect((await store.take([take])).outcomes[0]!.retryAfterMs).toBe(minuteMs);
    clock.advance(minuteMs);
    expect((await store.take([take])).taken).toBe(true);
  });
});

describe("a block", () => {
  const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(5, 1000)], blockForMs: minuteMs });
  const byHand = compileTestLimit({ algorithm: "gcra", windows: [testWindow(5, 1000)], blockable: true });
  const blocked = async (take: ResolvedLimit): Promise<number> => (await store.take([take])).outcomes[0]!.retryAfterMs;

  it.each([
    ["longer than block_for", limit],
    ["without a block_for", byHand],
  ])("by hand, %s, lasts as long as itself when the clock is set back, and no longer", async (_, one) => {
    const take = resolvedLimit(one, "u");
    await store.block([take], hourMs);
    clock.advance(-dayMs);
    expect((await store.peek([take])).outcomes[0]!.retryAfterMs).toBe(hourMs);
    expect(await blocked(take)).toBe(hourMs);
    clock.advance(10 * minuteMs);
    expect(await blocked(take)).toBe(50 * minuteMs);
    clock.advance(50 * minuteMs);
    expect(await blocked(take)).toBe(0);
  });

  it("is put off by one that ends later by the clock as it is now, after it was set back", async () => {
    const take = resolvedLimit(byHand, "u");
    await store.block([take], hourMs);
    clock.advance(-dayMs);
    await store.block([take], minuteMs);
    expect(await blocked(take), "a shorter one").toBe(hourMs);
    clock.advance(-dayMs);
    await store.block([take], 2 * hourMs);
    expect(await blocked(take), "a longer one").toBe(2 * hourMs);
  });

  it("of a server that is ahead by hours is over once the clock is right", async () => {
    const take = resolvedLimit(byHand, "u");
    await store.block([take], minuteMs);
    clock.advance(hourMs);
    expect(await blocked(take)).toBe(0);
  });

  it("outlives an edit of block_for, in both stores", async () => {
    const edited = compileTestLimit({ algorithm: "gcra", windows: [testWindow(5, 1000)], blockForMs: 1000 });
    for (const one of [new MemoryCounters({ clock }), store]) {
      for (let i = 0; i < 6; i++) await one.take([resolvedLimit(limit, "u")]);
      for (const now of [edited, byHand]) {
        const { outcomes } = await one.take([resolvedLimit(now, "u")]);
        expect([outcomes[0]!.fits, outcomes[0]!.retryAfterMs]).toEqual(["blocked", minuteMs]);
      }
    }
  });

  it("without a length, as earlier versions wrote it, is as long as block_for", async () => {
    const take = resolvedLimit(limit, "u");
    const key = blockKey(names, limit, "u");
    const plant = (untilMs: number): Promise<unknown> =>
      server.command("SET", key, String(1000 * (clock.epochMs() + untilMs)), "PX", dayMs);
    await plant(30_000);
    expect(await blocked(take)).toBe(30_000);
    await store.block([take], 20_000);
    expect(await blocked(take), "a shorter one").toBe(30_000);
    await store.block([take], 40_000);
    expect(await blocked(take), "a longer one").toBe(40_000);
    await plant(hourMs);
    expect(await blocked(take), "the clock was set back since").toBe(minuteMs);
    clock.advance(minuteMs);
    expect(await blocked(take)).toBe(0);
    await plant(hourMs);
    await store.block([take], 2 * minuteMs);
    expect(await blocked(take), "and put off").toBe(2 * minuteMs);
  });

  it("is not begun by a denial if it may only be begun by hand", async () => {
    const take = resolvedLimit(byHand, "u", 5);
    await store.take([take]);
    expect(await blocked(take)).toBe(1000);
    expect(await server.command("EXISTS", blockKey(names, byHand, "u"))).toBe(0);
  });
});

describe("a credit", () => {
  it.each([
    ["near", testWindow(10, hourMs), 20 * dayMs],
    ["far", testWindow(10, 90 * dayMs), 80 * dayMs],
  ])("is given to what an edit or a clock left behind once that is corrected (%s)", async (_, window, backMs) => {
    const before = compileTestLimit({ algorithm: "gcra", windows: [{ ...window, burst: 1000 }] });
    const after = compileTestLimit({ algorithm: "gcra", windows: [window] });
    for (const one of [new MemoryCounters({ clock }), store]) {
      await one.take([resolvedLimit(before, "u", 800)]);
      await one.charge([resolvedLimit(after, "u", -4)]);
      expect((await one.peek([resolvedLimit(after, "u")])).outcomes[0]!.remaining).toBe(4);
    }
    clock.advance(-backMs);
    await store.charge([resolvedLimit(after, "u", -3)]);
    expect((await store.peek([resolvedLimit(after, "u")])).outcomes[0]!.remaining).toBe(3);
  });

  it("is for the window of today, by a calendar, whatever the process thinks the time is", async () => {
    const day = { limit: 6, per: { kind: "calendar", unit: "day", timeZone: "Europe/Berlin" }, burst: 6 } as const;
    const limit = compileTestLimit({ algorithm: "fixed_window", windows: [day] });
    await store.take([resolvedLimit(limit, "u", 6)]);
    clock.advance(3 * dayMs);
    await store.charge([resolvedLimit(limit, "u", -2)]);
    const fresh = (await store.peek([resolvedLimit(limit, "u")])).outcomes[0]!;
    expect([fresh.remaining, fresh.resetAfterMs]).toEqual([6, 0]);
    await store.take([resolvedLimit(limit, "u", 6)]);
    await store.charge([resolvedLimit(limit, "u", -2)]);
    expect((await store.peek([resolvedLimit(limit, "u")])).outcomes[0]!.remaining).toBe(2);
  });

  it("leaves the end of a one-off quota where it was", async () => {
    const once = { limit: 6, per: { kind: "never" }, burst: 6 } as const;
    const take = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [once] }), "u", 6);
    for (const one of [new MemoryCounters({ clock }), store]) {
      await one.take([take]);
      clock.advance(29 * dayMs);
      await one.charge([{ ...take, cost: -2 }]);
      expect((await one.peek([take])).outcomes[0]!.remaining).toBe(2);
      clock.advance(dayMs);
      expect((await one.peek([take])).outcomes[0]!.remaining, "forgotten 30 days after it was last used").toBe(6);
    }
  });
});

describe("an edited limit", () => {
  it("that is lowered locks no subject out: the reported wait is the wait, in both stores", async () => {
    const windows = (burst: number) => [testWindow(1000, hourMs, burst)];
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
      const windows = (burst: number) => [testWindow(1000, hourMs, burst)];
      const small = resolvedLimit(compileTestLimit({ algorithm: "token_bucket", windows: windows(10) }), "u");
      const large = resolvedLimit(compileTestLimit({ algorithm: "token_bucket", windows: windows(1000) }), "u");
      await store.take([small], { receipt });
      for (let i = 0; i < 900; i++) {
        await store.take([large], { receipt });
        if (i % 50 > 0) continue;
        const [reading] = await store.read(large);
        expect(await readLifetime(large)).toBeGreaterThan(reading!.resetAfterMs);
      }
    },
  );

  it("that got another window charges a repeated id once all the same", async () => {
    const one = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, hourMs)] });
    const two = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, hourMs), testWindow(5, minuteMs)] });
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

it("a life that is not whole milliseconds is rounded up, and nothing is charged for no reason", async () => {
  const take = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, hourMs)] }), "u");
  expect((await store.take([take], { id: "x", fingerprint: "f", idTtlMs: 1500.5 })).taken).toBe(true);
  expect((await store.take([take], { id: "x", fingerprint: "f", idTtlMs: 1500.5 })).replayed).toBe(true);
});

it("debt is paid off by time alone, and no clamp forgives it, by either script", async () => {
  const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 10_000)] });
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

it("a take around the end of the circle can be given back", async () => {
  const circleMs = 2 ** 33;
  clock.advance(circleMs - (clock.epochMs() % circleMs) - 1_800_000 + 0.123);
  let given = 0;
  for (let i = 0; i < 200; i++) {
    clock.advance(1.237);
    const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(7, hourMs)], policy: `p${i}` });
    const { receipt } = await store.take([resolvedLimit(limit, "u", 5)], { receipt: true });
    if (await store.give(receipt!)) given += 1;
  }
  expect(given).toBe(200);
});

it("a key without an end is healed for as long as any counter of the call may need", async () => {
  const short = resolvedLimit(
    compileTestLimit({ algorithm: "gcra", windows: [testWindow(1000, 1000)], policy: "a" }),
    "u",
  );
  const long = resolvedLimit(
    compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 20 * hourMs)], policy: "b" }),
    "u",
    5,
  );
  await store.take([short]);
  await store.take([long]);
  await server.command("PERSIST", counterKey(long));
  for (let i = 0; i < 200 && (await readLifetime(long)) < 0; i++) {
    clock.advance(0.001);
    await Promise.all([store.take([short]), store.take([{ ...long, cost: 10 }])]);
  }
  const [reading] = await store.read(long);
  expect(await readLifetime(long)).toBeGreaterThan(reading!.resetAfterMs);
});
