import {
  createFaultyProxy,
  type FaultyProxy,
  flavors,
  startCluster,
  startServer,
  type TestServer,
} from "@sluice/test-servers";
import * as fc from "fast-check";
import type { ManualClock } from "sluice";
import type { LeaseAnswer, LeaseAsk, ResolvedLimit } from "sluice/store";
import { epochMs, leaseEpoch, ledgerMarginMs, maxHoldMs } from "sluice/store";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ledgerKey } from "./ask/encode-lease.ts";
import { findCode } from "./ask/window-code.ts";
import { createKeyNames } from "./place/key-names.ts";
import { RedisCounters } from "./redis-counters.ts";
import type { RedisCountersOptions } from "./redis-counters-options.ts";
import { scriptsOnTestTime, testTime } from "./testing/scripts-on-test-time.ts";

/** What leases leave on servers, and what becomes of it there. The rules are in the contract of `sluice/testing`. */

const hourMs = 3_600_000;
const holdMs = 65_000;
const names = createKeyNames("s");
/** 1 000 an hour, of which 100 may be unspent. */
const hourly = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1000, hourMs)], maxOvershoot: 0.1 });
const ofHour = resolvedLimit(hourly, "u");
const ledger = ledgerKey(names, hourly, "u");
const settled = { epoch: 0, spent: 0, kept: 0, returned: 0 };

let stores: RedisCounters[] = [];
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  stores = [];
});

async function open(servers: string, options: Partial<RedisCountersOptions> = {}): Promise<RedisCounters> {
  const store = new RedisCounters({ servers, deadlineMs: 5000, ...options });
  stores.push(store);
  await store.connected();
  return store;
}

const lease = (store: RedisCounters, ask: Partial<LeaseAsk>, limit = ofHour): Promise<LeaseAnswer> =>
  store.lease([limit], { want: 0, holdMs, ...ask });
const remaining = async (store: RedisCounters, limit: ResolvedLimit): Promise<number> =>
  (await store.peek([limit])).outcomes[0]!.remaining;

describe.each(flavors)("leases on %s", (flavor) => {
  let server: TestServer;
  let clock: ManualClock;
  let store: RedisCounters;
  beforeAll(async () => {
    server = await startServer({ flavor });
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    await server.command("FLUSHALL");
    clock = testTime();
    store = await open(server.url, { tune: scriptsOnTestTime(clock) } as Partial<RedisCountersOptions>);
  });

  const life = async (key: string): Promise<number> => Number(await server.command("PTTL", key));

  describe("the ledger", () => {
    it("lost costs one more allowance, and the counter is charged for it", async () => {
      let granted = 0;
      for (let i = 0; i < 10; i++) granted += (await lease(store, { want: 1000 })).granted;
      expect(granted).toBe(100);
      expect(await server.command("DEL", ledger)).toBe(1);
      for (let i = 0; i < 10; i++) granted += (await lease(store, { want: 1000 })).granted;
      expect(granted).toBe(200);
      expect(await remaining(store, ofHour)).toBe(800);
    });

    it("lost is not restored by kept units, which must not be spent then, and gives nothing back", async () => {
      const { epoch, granted } = await lease(store, { want: 40 });
      expect(granted).toBe(40);
      await server.command("DEL", ledger);
      const next = await lease(store, { want: 1000, settled: { epoch, spent: 5, kept: 20, returned: 15 } });
      expect([next.granted, next.unspent, next.forgotten]).toEqual([50, 50, 20]);
      expect(await remaining(store, ofHour)).toBe(1000 - 40 - 50);
      await server.command("DEL", ledger);
      expect((await lease(store, { settled: { ...settled, kept: 20 } })).unspent).toBe(0);
    });

    it("goes when everything is settled", async () => {
      const { epoch } = await lease(store, { want: 30 });
      expect(await server.command("EXISTS", ledger)).toBe(1);
      await lease(store, { settled: { epoch, spent: 10, kept: 0, returned: 19 } });
      expect(await server.command("EXISTS", ledger)).toBe(1);
      await lease(store, { settled: { epoch, spent: 1, kept: 0, returned: 0 } });
      expect(await server.command("EXISTS", ledger)).toBe(0);
    });

    it("is not created by a lease that is refused, or that is no longer known", async () => {
      await lease(store, {});
      await lease(store, { settled: { epoch: 1_700_000_000_000, spent: 5, kept: 0, returned: 5 } });
      await lease(store, { settled: { ...settled, epoch: 12_345, returned: 5 } });
      await lease(store, { want: 5 }, resolvedLimit({ ...hourly, blockable: true }, "u"));
      expect(await server.command("DBSIZE")).toBe(0);
    });

    it("forgets an epoch the moment that it ends", async () => {
      const { epoch } = await lease(store, { want: 30 });
      expect(epoch).toBe(leaseEpoch(clock.epochMs(), holdMs));
      clock.advance(epoch - clock.epochMs() - 0.25);
      expect((await lease(store, {})).unspent).toBe(30);
      clock.advance(0.25);
      const late = await lease(store, { settled: { epoch, spent: 0, kept: 0, returned: 30 } });
      expect([late.unspent, late.outcomes[0]!.remaining]).toEqual([0, await remaining(store, ofHour)]);
      expect((await store.read(ofHour))[0]!.state).not.toEqual({ aheadMs: 0 });
    });

    it("holds several epochs, each for itself, and drops those that have ended", async () => {
      const holds = [1, 30_000, 90_000, maxHoldMs];
      const epochs: number[] = [];
      for (const each of holds) epochs.push((await lease(store, { want: 10, holdMs: each })).epoch);
      expect(new Set(epochs).size).toBe(4);
      const whole = Number(await server.command("STRLEN", ledger));
      const one = await lease(store, { settled: { epoch: epochs[1]!, spent: 100, kept: 0, returned: 100 } });
      expect(one.unspent).toBe(30);
      clock.advance(epochs[0]! - clock.epochMs());
      expect((await lease(store, { want: 1, holdMs: maxHoldMs })).unspent).toBe(21);
      expect(Number(await server.command("STRLEN", ledger))).toBeLessThan(whole);
      clock.advance(epochs[2]! - clock.epochMs());
      expect((await lease(store, {})).unspent).toBe(11);
    });

    it("of a clock that was set back is kept no longer than the longest hold", async () => {
      clock.advance(30 * 24 * hourMs);
      await lease(store, { want: 30 });
      clock.advance(-30 * 24 * hourMs);
      expect((await lease(store, {})).unspent).toBe(30);
      clock.advance(maxHoldMs + ledgerMarginMs + epochMs);
      expect((await lease(store, {})).unspent).toBe(0);
    });

    it("is separate for each limit and subject", async () => {
      const other = { ...hourly, identity: "other" };
      await lease(store, { want: 1000 });
      for (const limit of [resolvedLimit(hourly, "v"), resolvedLimit(other, "u")])
        expect((await lease(store, { want: 1000 }, limit)).unspent).toBe(50);
    });
  });

  describe("the ledger's key", () => {
    it("ends soon after its last epoch, and not before", async () => {
      for (const each of [1, 65_000, 20_000, maxHoldMs]) {
        await lease(store, { want: 1, holdMs: each });
        const least = each === 20_000 ? 65_000 : each;
        const ttl = await life(ledger);
        // By the server's clock some time has passed since.
        expect(ttl).toBeGreaterThan(least + ledgerMarginMs - 10_000);
        expect(ttl).toBeLessThanOrEqual(least + ledgerMarginMs + epochMs + 1000);
      }
    });

    it("gets an expiry again if it was removed, with the next grant or while others are asked for", async () => {
      await lease(store, { want: 1 });
      expect(await server.command("PERSIST", ledger)).toBe(1);
      await lease(store, { want: 1 });
      expect(await life(ledger)).toBeGreaterThan(0);
      expect(await server.command("PERSIST", ledger)).toBe(1);
      const healed = store.stats.healed;
      // Of several keys in a call one is checked; which one depends on the time.
      for (let i = 0; i < 1000 && (await life(ledger)) < 0; i++) {
        clock.advance(0.001);
        await lease(store, {});
      }
      expect(await life(ledger)).toBeGreaterThan(0);
      expect(await life(ledger)).toBeLessThanOrEqual(maxHoldMs + ledgerMarginMs + epochMs + 1000);
      expect(store.stats.healed).toBe(healed + 1);
    });

    const garbage: readonly (readonly [string, ...(string | Buffer | number)[]])[] = [
      ["SET", ledger, "hello", "PX", hourMs],
      ["SET", ledger, "", "PX", hourMs],
      ["SET", ledger, "17", "PX", hourMs],
      ["SET", ledger, "Ghello", "PX", hourMs],
      ["SET", ledger, Buffer.alloc(17, 0xee), "PX", hourMs],
      ["SET", ledger, encodeLedger([[17e7, -1]]), "PX", hourMs],
      ["SET", ledger, encodeLedger([[2 ** 32 - 1, 0.5]]), "PX", hourMs],
      ["SET", ledger, encodeLedger([[2 ** 32 - 1, Number.NaN]]), "PX", hourMs],
      ["SET", ledger, encodeLedger([[2 ** 32 - 1, Number.POSITIVE_INFINITY]]), "PX", hourMs],
      ["SET", ledger, encodeLedger(Array.from({ length: 3 }, () => [2 ** 32 - 1, 2 ** 52])), "PX", hourMs],
      ["RPUSH", ledger, "a"],
      ["HSET", ledger, "a", "b"],
    ];
    it.each(garbage)("that holds something else (%s, …) counts as nothing, and is reported", async (...command) => {
      await server.command(...(command as [string, ...string[]]));
      const before = store.stats.foreign;
      expect((await lease(store, {})).unspent).toBe(0);
      expect(store.stats.foreign).toBe(before + 1);
      const answer = await lease(store, { want: 1000, settled: { ...settled, epoch: 100_000, spent: 5, returned: 5 } });
      expect([answer.granted, answer.unspent]).toEqual([50, 50]);
      expect(await remaining(store, ofHour)).toBe(950);
      expect((await lease(store, {})).unspent).toBe(50);
      expect(store.stats.foreign).toBe(before + 2);
      expect(await life(ledger)).toBeGreaterThan(0);
    });

    it("may hold any bytes: that is not an error, and never lets more than the allowance out at once", async () => {
      const entry = fc.tuple(
        fc.oneof(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.constant(leaseEpoch(clock.epochMs(), holdMs) / epochMs)),
        fc.oneof(fc.nat({ max: 200 }), fc.double(), fc.constantFrom(2 ** 53, -1)),
      );
      const bytes = fc.oneof(fc.array(entry, { maxLength: 6 }).map(encodeLedger), fc.uint8Array({ maxLength: 40 }));
      await fc.assert(
        fc.asyncProperty(bytes, async (value) => {
          await server.command("FLUSHALL");
          await server.command("SET", ledger, Buffer.from(value), "PX", hourMs);
          const [answer, beside] = await Promise.all([
            lease(store, { want: 1000 }),
            lease(store, { want: 10 }, resolvedLimit(hourly, "neighbour")),
          ]);
          expect(Number.isSafeInteger(answer.granted) && answer.granted >= 0 && answer.granted <= 50).toBe(true);
          expect(Number.isInteger(answer.unspent) && answer.unspent >= answer.granted).toBe(true);
          expect(beside.granted).toBe(10);
          expect(await life(ledger)).toBeGreaterThan(0);
        }),
        { numRuns: 150 },
      );
    });
  });

  describe("in one call", () => {
    it("the same counter and ledger are found as the lease before left them", async () => {
      await lease(store, {});
      const before = store.stats.calls;
      const answers = await Promise.all(Array.from({ length: 5 }, () => lease(store, { want: 1000 })));
      expect(store.stats.calls - before).toBe(1);
      expect(answers.map(({ granted, unspent }) => [granted, unspent])).toEqual([
        [50, 50],
        [25, 75],
        [13, 88],
        [6, 94],
        [3, 97],
      ]);
      expect(answers.map(({ outcomes }) => outcomes[0]!.remaining)).toEqual([950, 925, 912, 906, 903]);
      expect(await remaining(store, ofHour)).toBe(903);
    });

    it("what one returns another may have", async () => {
      const { epoch } = await lease(store, { want: 40 });
      await store.charge([{ ...ofHour, cost: 960 }]);
      const [first, second] = await Promise.all([
        lease(store, { settled: { epoch, spent: 0, kept: 0, returned: 40 } }),
        lease(store, { want: 1000 }),
      ]);
      expect([first.granted, first.outcomes[0]!.remaining, second.granted]).toEqual([0, 40, 40]);
      expect((await store.take([ofHour])).taken).toBe(false);
    });

    it("many subjects are leased, up to the weight of a call, along with takes and charges", async () => {
      const subjects = Array.from({ length: 64 }, (_, i) => resolvedLimit(hourly, `u${i}`));
      const before = store.stats.calls;
      const answers = await Promise.all([
        ...subjects.map((one) => lease(store, { want: 7 }, one)),
        store.take([ofHour]),
        store.charge([ofHour]),
      ]);
      expect(answers.slice(0, 64).map((one) => (one as LeaseAnswer).granted)).toEqual(subjects.map(() => 7));
      // A lease of one window weighs five of the 64 that a call may.
      const calls = store.stats.calls - before;
      expect(calls).toBeGreaterThanOrEqual(4 + 2);
      expect(calls).toBeLessThan(64 / 4);
    });
  });

  it("grants nothing of limits that may no longer be leased, and still settles outstanding units", async () => {
    const { epoch } = await lease(store, { want: 40 });
    const exact = resolvedLimit({ ...hourly, policy: { ...hourly.policy, counters: "exact" } }, "u");
    const answer = await lease(store, { want: 40, settled: { epoch, spent: 10, kept: 5, returned: 25 } }, exact);
    expect([answer.granted, answer.unspent, answer.outcomes[0]!.remaining]).toEqual([0, 5, 985]);
    expect(answer.outcomes[0]).toMatchObject({ fits: "now", retryAfterMs: 0 });
  });

  it("gives nothing back to a counter that another limit of the request charges", async () => {
    const { epoch } = await lease(store, { want: 40 });
    const beside = { ...ofHour, windows: ofHour.windows.map((window) => ({ ...window, charges: false })) };
    const answer = await lease(store, { settled: { epoch, spent: 0, kept: 0, returned: 40 } }, beside);
    expect([answer.unspent, await remaining(store, ofHour)]).toEqual([0, 960]);
  });

  it("grants whole units of a fractional burst", async () => {
    // 3 is worth no more than the tolerance, and more than the burst.
    const windows = [testWindow(3, 1000, 2.999999)];
    const limit = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows, maxOvershoot: 1 }), "u");
    const wide = { ...limit, windows: limit.windows.map((one) => ({ ...one, source: { ...one.source, limit: 3 } })) };
    expect((await store.take([{ ...limit, cost: 3 }])).outcomes[0]!.fits).toBe("never");
    expect((await lease(store, { want: 3 }, wide)).granted).toBe(2);
    const roomy = resolvedLimit(
      compileTestLimit({ algorithm: "gcra", windows: [testWindow(300, 1000, 2.999999)], maxOvershoot: 1 }),
      "v",
    );
    const answer = await lease(store, { want: 3 }, roomy);
    expect([answer.granted, answer.outcomes[0]!.fits]).toEqual([2, "now"]);
  });

  it("finds a counter just used up that exceeds a lowered limit", async () => {
    const wide = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1000, hourMs, 5000)] });
    const narrow = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, hourMs)], maxOvershoot: 1 });
    await store.charge([resolvedLimit(wide, "u", 5000)]);
    const lowered = resolvedLimit(narrow, "u");
    const { granted, outcomes } = await lease(store, { want: 5 }, lowered);
    expect([granted, outcomes[0]!.remaining, outcomes[0]!.retryAfterMs]).toEqual([0, 0, hourMs / 10]);
    expect((await store.take([lowered])).taken).toBe(false);
    clock.advance(hourMs / 10);
    expect((await lease(store, { want: 5 }, lowered)).granted).toBe(1);
  });

  it("reduces outstanding receipts by what is returned", async () => {
    const { epoch } = await lease(store, { want: 40 });
    const { receipt } = await store.take([{ ...ofHour, cost: 10 }], { receipt: true });
    await lease(store, { settled: { epoch, spent: 0, kept: 0, returned: 40 } });
    expect(await store.give(receipt!)).toBe(true);
    expect((await store.read(ofHour))[0]!.remaining).toBe(1000);
    const second = await lease(store, { want: 40 });
    const { receipt: voided } = await store.take([{ ...ofHour, cost: 10 }], { receipt: true });
    await store.charge([{ ...ofHour, cost: -20 }]);
    await lease(store, { settled: { epoch: second.epoch, spent: 0, kept: 0, returned: 40 } });
    await store.charge([{ ...ofHour, cost: 10 }]);
    expect(await store.give(voided!), "the counter was emptied since").toBe(false);
    expect(await remaining(store, ofHour)).toBe(990);
  });

  it("asks again if a calendar's day is another one on the server, and is granted once", async () => {
    const day = {
      limit: 1000,
      per: { kind: "calendar", unit: "day", timeZone: "Europe/Berlin" },
      burst: 1000,
    } as const;
    const limit = compileTestLimit({ algorithm: "fixed_window", windows: [day], maxOvershoot: 0.1 });
    const daily = resolvedLimit(limit, "u");
    expect((await lease(store, { want: 30 }, daily)).granted).toBe(30);
    clock.advance(40 * 24 * hourMs);
    const calls = store.stats.calls;
    const answer = await lease(store, { want: 30 }, daily);
    expect([answer.granted, answer.unspent, answer.outcomes[0]!.remaining]).toEqual([30, 30, 970]);
    expect(store.stats.calls - calls).toBe(2);
  });

  it("refuses nonsense before it asks a server", async () => {
    const before = store.stats.questions;
    for (const ask of [{ want: -1 }, { holdMs: 0.5 }, { settled: { ...settled, kept: -1 } }])
      await expect(lease(store, ask)).rejects.toMatchObject({ code: "invalid_request" });
    expect(await store.lease([], { want: 5, holdMs })).toMatchObject({
      granted: 0,
      epoch: 0,
      outcomes: [],
      unspent: 0,
    });
    expect(store.stats.questions).toBe(before);
  });
});

/** A ledger as scripts keep it. */
function encodeLedger(entries: readonly (readonly [epoch: number, units: number])[]): Buffer {
  const bytes = Buffer.alloc(1 + 12 * entries.length, "G");
  entries.forEach(([epoch, units], i) => {
    bytes.writeUInt32LE(epoch, 1 + 12 * i);
    bytes.writeDoubleLE(units, 5 + 12 * i);
  });
  return bytes;
}

describe.each(flavors)("leases on a %s cluster", (flavor) => {
  it("are of limits that live in one place; of others nothing is granted or settled", async () => {
    const cluster = await startCluster({ flavor });
    try {
      const servers = `redis+cluster://${cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",")}`;
      const store = await open(servers);
      const byTenant = ["tenant", "tenant,user"].map((by) =>
        compileTestLimit({
          algorithm: "fixed_window",
          windows: [testWindow(1000, 24 * hourMs)],
          by: by.split(","),
          maxOvershoot: 0.1,
        }),
      );
      for (let i = 0; i < 8; i++) {
        const own = [resolvedLimit(byTenant[0]!, `t${i}`), resolvedLimit(byTenant[1]!, `t${i}|u1`)];
        const { granted, epoch, outcomes } = await store.lease(own, { want: 20, holdMs });
        expect([granted, outcomes.map((one) => one.remaining)]).toEqual([20, [980, 980]]);
        const settling = { epoch, spent: 0, kept: 0, returned: 20 };
        expect((await store.lease(own, { want: 0, holdMs, settled: settling })).unspent).toBe(0);
      }
      const apart = Array.from({ length: 8 }, (_, i) => resolvedLimit(byTenant[0]!, `a${i}`));
      const epochs = await Promise.all(apart.map((one) => lease(store, { want: 20 }, one)));
      const settling = { epoch: epochs[0]!.epoch, spent: 5, kept: 0, returned: 15 };
      const answer = await store.lease(apart, { want: 20, holdMs, settled: settling });
      expect(answer).toMatchObject({ granted: 0, epoch: 0, outcomes: [], unspent: 0 });
      for (const one of apart)
        expect([await remaining(store, one), (await lease(store, {}, one)).unspent]).toEqual([980, 20]);
    } finally {
      await cluster.close();
    }
  }, 60_000);
});

describe("leases over a line that loses or delays", () => {
  let server: TestServer;
  let proxy: FaultyProxy;
  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    await server.command("FLUSHALL");
    proxy = await createFaultyProxy(server);
  });
  afterEach(() => proxy.close());

  it("are not asked for again automatically if the reply is lost: it stays granted, once", async () => {
    const store = await open(proxy.url);
    await lease(store, {});
    proxy.dropRepliesOnce();
    await expect(lease(store, { want: 40 })).rejects.toMatchObject({ code: "store_unavailable", mayBeDone: true });
    proxy.heal();
    await store.connected();
    expect((await lease(store, {})).unspent).toBe(40);
    expect([await remaining(store, ofHour), store.stats.retries]).toEqual([960, 0]);
  });

  it("say that they were certainly not asked for if there is no server to ask", async () => {
    const own = await startServer({ flavor: "valkey" });
    const store = await open(own.url);
    await lease(store, { want: 40 });
    await own.close();
    await expect.poll(() => store.ready, { timeout: 30_000 }).toBe(false);
    await expect(lease(store, { want: 40 })).rejects.toMatchObject({ code: "store_unavailable", mayBeDone: false });
  });

  it("are accepted although the answer comes after the deadline of checks", async () => {
    // The breaker does not matter here.
    const breaker = { failuresInARow: 1e9, minCalls: 1e9 };
    const store = await open(proxy.url, { deadlineMs: 50, breaker });
    await lease(store, {});
    proxy.delayMs = 700;
    // On a busy machine this process may be the one that is late.
    const late = (): number => store.stats.timeouts + store.stats.starved;
    const lateBefore = late();
    const calls = store.stats.calls;
    const [answer, check] = await Promise.all([
      lease(store, { want: 40 }),
      store.take([resolvedLimit(hourly, "other")]).catch((error: unknown) => error),
    ]);
    expect(answer.granted).toBe(40);
    expect(check).toMatchObject({ code: "store_unavailable" });
    expect([late() - lateBefore, store.stats.calls - calls]).toEqual([1, 2]);
  });

  it("are carried out although the server gets to them after their policy's deadline, because the answer is still wanted", async () => {
    const breaker = { failuresInARow: 1e9, minCalls: 1e9 };
    const hasty = resolvedLimit({ ...hourly, policy: { ...hourly.policy, deadlineMs: 50 } }, "u");
    const store = await open(server.url, { deadlineMs: 60_000, breaker });
    const { epoch } = await lease(store, { want: 40 });
    const { calls } = store.stats;
    server.pause();
    const settling = { epoch, spent: 10, kept: 0, returned: 30 };
    const asked = Promise.all([
      lease(store, { settled: settling }, hasty),
      lease(store, { want: 20 }, { ...hasty, subject: "v" }),
    ]);
    await new Promise((resolve) => setTimeout(resolve, 200));
    server.resume();
    const [back, granted] = await asked;
    expect([back.unspent, await remaining(store, ofHour), granted.granted]).toEqual([0, 990, 20]);
    // One for both, and that of the look.
    expect(store.stats.calls - calls).toBe(2);
  });

  it("are not carried out if the server gets to them when the answer is no longer wanted, and are not asked for again", async () => {
    const breaker = { failuresInARow: 1e9, minCalls: 1e9 };
    const hasty = resolvedLimit({ ...hourly, policy: { ...hourly.policy, deadlineMs: 50 } }, "u");
    const store = await open(server.url, { deadlineMs: 60_000, breaker });
    await lease(store, {});
    const { calls } = store.stats;
    server.pause();
    await expect(lease(store, { want: 40 }, hasty)).rejects.toMatchObject({ code: "store_unavailable" });
    await new Promise((resolve) => setTimeout(resolve, 200));
    server.resume();
    expect(store.stats.calls - calls).toBe(1);
    await expect.poll(() => lease(store, {}), { timeout: 30_000 }).toMatchObject({ unspent: 0 });
    expect(await remaining(store, ofHour)).toBe(1000);
  });

  it("are given up if no server answers", async () => {
    const hasty = resolvedLimit({ ...hourly, policy: { ...hourly.policy, deadlineMs: 50 } }, "u");
    const store = await open(proxy.url, { deadlineMs: 60_000 });
    await lease(store, {});
    proxy.blackhole();
    await expect(lease(store, { want: 40 }, hasty)).rejects.toMatchObject({ code: "store_unavailable" });
    // Timeouts are those of checks.
    expect([store.stats.retries, store.stats.timeouts]).toEqual([0, 0]);
  });

  it("are rejected once the store is closed", async () => {
    const store = await open(server.url);
    await store.close();
    await expect(lease(store, { want: 1 })).rejects.toMatchObject({ code: "store_unavailable" });
  });
});

it("a ledger shares the slot of its counters, whatever subjects are called", () => {
  const tagged = createKeyNames("s{a7}");
  for (const subject of ["u", "{x}", "é".repeat(100), "a|b"]) {
    const key = ledgerKey(tagged, hourly, subject);
    expect(key.startsWith("s{a7}:")).toBe(true);
    expect(key).not.toBe(tagged.counter(findCode(hourly.windows[0]!).code, subject));
  }
});
