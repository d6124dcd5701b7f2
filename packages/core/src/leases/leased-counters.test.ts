import { describe, expect, it } from "vitest";
import { type CallLater, ManualClock } from "../clock.ts";
import type { CentralCounters, LeaseAnswer, LeaseAsk, ResolvedLimit, TakeAnswer } from "../counters/counter-store.ts";
import { MemoryCounters } from "../counters/memory-counters.ts";
import type { OneOutcome } from "../counters/single-takes.ts";
import { StoreUnavailable } from "../counters/store-unavailable.ts";
import { createLimiter } from "../create-limiter.ts";
import type { Algorithm } from "../policy/policy.ts";
import { compileTestLimit, conversationStartMs, resolvedLimit, type TestLimit, testWindow } from "../testing/index.ts";
import { LeasedCounters } from "./leased-counters.ts";
import type { LeasedCountersOptions } from "./leased-counters-options.ts";

/** A central store that can be unavailable, and counts its calls. */
class Centre extends MemoryCounters {
  away = false;
  takes = 0;
  asks: LeaseAsk[] = [];
  askedBy: ResolvedLimit[] = [];

  override take(...args: Parameters<MemoryCounters["take"]>): TakeAnswer {
    this.takes += 1;
    if (this.away) throw new StoreUnavailable("storage_unavailable");
    return super.take(...args);
  }

  override takeOne(...args: Parameters<MemoryCounters["takeOne"]>): Readonly<OneOutcome> {
    this.takes += 1;
    if (this.away) throw new StoreUnavailable("storage_unavailable");
    return super.takeOne(...args);
  }

  override lease(limits: readonly ResolvedLimit[], ask: LeaseAsk): LeaseAnswer {
    this.asks.push(ask);
    this.askedBy.push(limits[0]!);
    if (this.away) throw new StoreUnavailable("storage_unavailable");
    return super.lease(limits, ask);
  }
}

interface Under {
  readonly clock: ManualClock;
  readonly centre: Centre;
  readonly store: LeasedCounters;
  /** Lets time pass, and timers go off. */
  pass(ms: number): Promise<void>;
  /** How many timers there are. */
  readonly timers: () => number;
}

function open(options: LeasedCountersOptions = {}, clock = new ManualClock(conversationStartMs, 1000)): Under {
  const centre = new Centre({ clock });
  const timers = new Map<() => void, number>();
  const callLater: CallLater = (work, inMs) => {
    timers.set(work, clock.nowMs() + inMs);
    return () => timers.delete(work);
  };
  const times = { refreshMs: 500, leaseMs: 5000, hotPerSecond: 20 };
  const store = new LeasedCounters(centre, { clock, callLater, ...times, ...options });
  return {
    clock,
    centre,
    store,
    timers: () => timers.size,
    async pass(ms) {
      await settled();
      const untilMs = clock.nowMs() + ms;
      for (;;) {
        const due = [...timers].filter(([, atMs]) => atMs <= untilMs).sort(([, a], [, b]) => a - b)[0];
        if (due === undefined) break;
        timers.delete(due[0]);
        clock.advance(Math.max(due[1] - clock.nowMs(), 0));
        due[0]();
        await settled();
      }
      clock.advance(untilMs - clock.nowMs());
    },
  };
}

async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

/** 10 000 per second, of which 1 000 may be unspent; leased from the first request on. */
function pinned(over: Partial<TestLimit> = {}, subject = "u"): ResolvedLimit {
  const windows = [testWindow(10_000, 1000)];
  const limit = { algorithm: "gcra" as Algorithm, windows, maxOvershoot: 0.1, counters: "leased" as const, ...over };
  return resolvedLimit(compileTestLimit(limit), subject);
}

/** A store that holds a lease of this limit. */
async function leasing(limit: ResolvedLimit, options: LeasedCountersOptions = {}): Promise<Under> {
  const under = open(options);
  for (let i = 0; i < 30; i++) {
    await under.store.take([limit]);
    await under.pass(1);
  }
  return under;
}

describe("leased counters", () => {
  it("decide by what is in hand, at once and without the central store", async () => {
    const { store, centre } = await leasing(pinned());
    const { takes } = centre;
    const answer = store.take([pinned()]);
    expect(answer).toMatchObject({ taken: true, outcomes: [{ fits: "now" }] });
    expect(centre.takes).toBe(takes);
    expect(store.stats).toMatchObject({ leases: 1 });
  });

  it.each<Algorithm>(["gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window"])(
    "report what is left of a %s as the central store would, including what is in hand",
    async (algorithm) => {
      const limit = pinned({ algorithm, windows: [testWindow(10_000, 3_600_000)] });
      const { store } = await leasing(limit);
      const first = (await store.take([limit])).outcomes[0]!;
      const second = (await store.take([{ ...limit, cost: 3 }])).outcomes[0]!;
      expect(first.remaining - second.remaining).toBe(3);
      expect(first.remaining).toBe(10_000 - 31);
      expect(second.resetAfterMs).toBeGreaterThan(0);
    },
  );

  it("lease hot counters, and give them back when they cool", async () => {
    const limit = pinned({ counters: "auto" });
    const under = open();
    const { store, centre } = under;
    for (let i = 0; i < 10; i++) {
      await store.take([limit]);
      await under.pass(100);
    }
    expect(store.stats.leases).toBe(0);
    for (let i = 0; i < 200; i++) {
      await store.take([limit]);
      await under.pass(10);
    }
    expect(store.stats).toMatchObject({ leases: 1 });
    expect(store.stats.local).toBeGreaterThan(100);
    await under.pass(8000);
    expect(store.stats).toMatchObject({ leases: 0, tokens: 0 });
    expect(store.stats.returned).toBeGreaterThan(0);
    expect(await centre.lease([limit], { want: 0, holdMs: 1 })).toMatchObject({ unspent: 0 });
    const { granted, spent, returned, lost } = store.stats;
    expect(granted).toBe(spent + returned + lost);
  });

  it("lease a counter earlier while its server is short of time, and as long as that lasts", async () => {
    let decisions: number | undefined;
    const asked: string[] = [];
    const under = open({
      ...{ hotPerSecond: 10, leaseMs: 20_000, refreshMs: 10_000 },
      strainedDecisions: ({ subject }) => {
        asked.push(subject);
        return subject === "u" ? decisions : undefined;
      },
    });
    const pass = async (): Promise<number> => {
      // A quarter of a decision a second each: five in the time of a lease.
      for (let i = 0; i < 20; i++) {
        for (const subject of ["u", "elsewhere"]) await under.store.take([pinned({ counters: "auto" }, subject)]);
        await under.pass(4_000);
      }
      return under.store.stats.leases;
    };
    expect(await pass()).toBe(0);
    decisions = 7;
    expect(await pass()).toBe(0);
    decisions = 4;
    expect(await pass()).toBe(1);
    expect(new Set(under.centre.askedBy.map(({ subject }) => subject))).toEqual(new Set(["u"]));
    decisions = undefined;
    expect(await pass()).toBe(0);
    expect(new Set(asked)).toEqual(new Set(["u", "elsewhere"]));
  });

  it("stay with a counter between hot and cool, and do not move it to and fro", async () => {
    const limit = pinned({ counters: "auto" });
    const under = open();
    for (let i = 0; i < 200; i++) {
      await under.store.take([limit]);
      await under.pass(10);
    }
    // Ten per second: too little to become hot, enough to stay.
    for (let i = 0; i < 200; i++) {
      await under.store.take([limit]);
      await under.pass(100);
      expect(under.store.stats.leases).toBe(1);
    }
  });

  it("fetch the next before the last fifth is gone, one call at a time", async () => {
    const limit = pinned();
    const { store, centre } = await leasing(limit);
    const { asks } = centre;
    const before = asks.length;
    while (store.stats.tokens > 0 && asks.length === before) await store.take([limit]);
    expect(asks.length).toBe(before + 1);
    expect(asks[before]?.settled?.kept).toBeGreaterThan(0);
    expect(store.stats.tokens).toBeGreaterThan(0);
  });

  it("fetch what can wait a moment later, together, and once each", async () => {
    const limits = ["a", "b", "c"].map((subject) => pinned({}, subject));
    const under = open();
    const { store, centre } = under;
    // A request every 50 ms each: of 16 tokens, the last fifth lasts for a while.
    const askedAt: number[] = [];
    for (let i = 0; i < 40; i++) {
      const { asks } = centre;
      const before = asks.length;
      for (const limit of limits) await store.take([limit]);
      // The first leases are begun at once.
      if (i > 0) expect(asks.length).toBe(before);
      await under.pass(9);
      if (i > 0) expect(asks.length).toBe(before);
      await under.pass(1);
      if (asks.length > before) askedAt.push(asks.length - before);
      await under.pass(40);
    }
    expect(askedAt.length).toBeGreaterThan(2);
    expect(new Set(askedAt.slice(1))).toEqual(new Set([3]));
    // The first request of each, before anything was in hand.
    expect(centre.takes).toBe(3);
  });

  it("no longer wait for others with a fetch once half of the last fifth is gone", async () => {
    const limit = pinned();
    const under = open();
    const { store, centre } = under;
    for (let i = 0; i < 4; i++) {
      await store.take([limit]);
      await under.pass(500);
    }
    const { length } = centre.asks;
    while (centre.asks.length === length && store.stats.tokens > 0) store.take([limit]);
    expect(centre.asks).toHaveLength(length + 1);
    expect(centre.asks[length]!.settled!.kept).toBeGreaterThan(0);
    await under.pass(20);
    expect(centre.asks).toHaveLength(length + 1);
  });

  it("fetch nothing more when everything is given back", async () => {
    const limit = pinned();
    const under = await leasing(limit);
    const { store, centre } = under;
    await under.pass(5000);
    const timers = under.timers();
    await store.take([limit]);
    expect(under.timers()).toBe(timers + 1);
    await store.drain();
    expect(under.timers()).toBe(0);
    const { length } = centre.asks;
    await under.pass(1000);
    expect(centre.asks).toHaveLength(length);
    expect(store.stats).toMatchObject({ leases: 0, tokens: 0, lost: 0 });
  });

  it("do not fetch a lease that was edited or given back while it waited for others", async () => {
    const limit = pinned();
    const under = await leasing(limit);
    const { store, centre } = under;
    await under.pass(5000);
    await store.take([limit]);
    const { tokens } = store.stats;
    const edited = pinned({ windows: [testWindow(20_000, 1000)] });
    await store.take([edited]);
    await under.pass(50);
    expect(store.stats).toMatchObject({ returned: tokens, lost: 0 });
    // It was given back, and the edited one is leased separately: once each.
    expect(centre.asks.filter(({ want }) => want === 0)).toHaveLength(1);
    const { granted, spent, returned } = store.stats;
    expect(store.stats.tokens).toBe(granted - spent - returned);
  });

  it("are not begun for less than pays for their calls, however short they are", async () => {
    const limit = pinned({ counters: "auto" });
    const under = open({ hotPerSecond: 0.1, leaseMs: 500 });
    for (let i = 0; i < 60; i++) {
      await under.store.take([limit]);
      await under.pass(200);
    }
    expect(under.centre.asks).toEqual([]);
    for (let i = 0; i < 60; i++) {
      await under.store.take([limit]);
      await under.pass(20);
    }
    expect(under.store.stats.leases).toBe(1);
  });

  it("keep the last places for the hottest: the fewer are left, the hotter a counter has to be", async () => {
    const under = open({ maxLeases: 100, hotPerSecond: 2, leaseMs: 60_000, refreshMs: 60_000 });
    const { store } = under;
    // Two hundred subjects at four a second each.
    const crowd = Array.from({ length: 200 }, (_, i) => pinned({ counters: "auto" }, `crowd-${i}`));
    for (let i = 0; i < 40; i++) {
      for (const limit of crowd) await store.take([limit]);
      await under.pass(250);
    }
    const { leases } = store.stats;
    expect(leases).toBeGreaterThan(60);
    expect(leases).toBeLessThan(100);
    const whale = pinned({ counters: "auto" }, "whale");
    for (let i = 0; i < 500; i++) {
      await store.take([whale]);
      await under.pass(1);
    }
    expect(store.stats.leases).toBe(leases + 1);
  });

  it("report for many leases what was in hand at most two seconds ago, and for few what is", async () => {
    const under = open({ leaseMs: 60_000 });
    const { store } = under;
    const limits = Array.from({ length: 1200 }, (_, i) => pinned({}, `s${i}`));
    for (const limit of limits) await store.take([limit]);
    await settled();
    // Before the first round is over all of them are visited.
    expect(store.stats.tokens).toBeGreaterThan(1200);
    await under.pass(2500);
    const { tokens, leases } = store.stats;
    expect(leases).toBe(1200);
    const balance = (): number => {
      const { granted, spent, returned, lost } = store.stats;
      return granted - spent - returned - lost;
    };
    expect(tokens).toBe(balance());
    for (const limit of limits) await store.take([limit]);
    expect(balance()).toBe(tokens - 1200);
    expect(store.stats.tokens).toBe(tokens);
    await under.pass(2000);
    expect(store.stats.tokens).toBe(balance());
  });

  it("report nothing about former leases once there are others", async () => {
    const under = open({ leaseMs: 1000 });
    const { store } = under;
    const many = (name: string, length: number): ResolvedLimit[] =>
      Array.from({ length }, (_, i) => pinned({}, `${name}-${i}`));
    for (const limit of many("first", 1200)) await store.take([limit]);
    await under.pass(10_000);
    expect(store.stats).toMatchObject({ leases: 0, tokens: 0 });
    for (const limit of many("second", 1500)) await store.take([limit]);
    await settled();
    const { granted, spent, returned, lost, tokens } = store.stats;
    expect(tokens).toBe(granted - spent - returned - lost);
  });

  it.each([
    ["an exact policy", { counters: "exact" as const, maxOvershoot: 0.1 }],
    ["an allowance of nothing", { counters: "auto" as const, maxOvershoot: 0 }],
    ["an allowance too small to be worth it", { counters: "auto" as const, maxOvershoot: 0.0009 }],
    ["a sliding log", { algorithm: "sliding_log" as const }],
    ["a limit whose subjects may be blocked", { blockable: true }],
  ])("leave requests with %s to the central store", async (_, over) => {
    const under = open();
    for (let i = 0; i < 100; i++) await under.store.take([pinned(over)]);
    expect(under.store.stats).toMatchObject({ leases: 0, local: 0, central: 100 });
    expect(under.centre.takes).toBe(100);
  });

  it("take from all limits of a request or from none, wherever they are decided", async () => {
    const tenant = pinned({ policy: "tenant" });
    const user = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(2, 60_000)] }), "u");
    const { store } = await leasing(tenant, { maxDenialMs: 0 });
    const { tokens, spent } = store.stats;
    const answers = [await store.take([tenant, user]), await store.take([tenant, user])];
    expect(answers.map(({ taken }) => taken)).toEqual([true, true]);
    expect(store.stats.tokens).toBe(tokens - 2);
    const denied = await store.take([tenant, user]);
    expect(denied).toMatchObject({ taken: false, outcomes: [{ fits: "now" }, { fits: "later" }] });
    expect(store.stats.tokens).toBe(tokens - 2);
    expect(store.stats.spent).toBe(spent + 2);
  });

  it("put back what was set aside if the central store fails", async () => {
    const tenant = pinned({ policy: "tenant" });
    const user = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(2, 60_000)] }), "u");
    const { store, centre } = await leasing(tenant);
    const { tokens } = store.stats;
    centre.away = true;
    expect(() => store.take([tenant, user])).toThrow(StoreUnavailable);
    expect(store.stats.tokens).toBe(tokens);
  });

  it("spend nothing of a shadow policy that does not fit, and nothing at all if the enforced ones do not", async () => {
    const enforced = pinned({ policy: "enforced" });
    const shadow = { ...pinned({ policy: "shadow" }), group: 1 };
    const under = await leasing(enforced);
    const { store } = under;
    for (let i = 0; i < 30; i++) {
      await store.take([shadow]);
      await under.pass(1);
    }
    const tight = {
      ...resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(1, 60_000)] }), "t"),
      group: 1,
    };
    await store.take([enforced, shadow, tight]);
    const { tokens } = store.stats;
    const answer = await store.take([enforced, shadow, tight]);
    expect(answer).toMatchObject({ taken: true, outcomes: [{ fits: "now" }, { fits: "now" }, { fits: "later" }] });
    expect(store.stats.tokens).toBe(tokens - 1);
  });

  it("deny here what the central store denied, until it may be retried", async () => {
    const limit = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 1000, 1)] }), "u");
    const { store, centre, clock } = open();
    await store.take([limit]);
    expect(await store.take([limit])).toMatchObject({ taken: false });
    expect(centre.takes).toBe(2);
    for (let i = 0; i < 99; i++) {
      expect(await store.take([limit])).toMatchObject({
        taken: false,
        outcomes: [{ fits: "later", retryAfterMs: 100 - i }],
      });
      clock.advance(1);
    }
    expect(centre.takes).toBe(2);
    clock.advance(1);
    expect(await store.take([limit])).toMatchObject({ taken: true });
    expect(store.stats.denials).toBe(99);
  });

  it("ask the central store about a denial if every limit will be read, if a policy is exact, and after a reset", async () => {
    const windows = [testWindow(1, 60_000)];
    const limit = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows }), "u");
    const { store, centre } = open();
    for (let i = 0; i < 3; i++) await store.take([limit]);
    expect(centre.takes).toBe(2);
    await store.take([limit], { details: true });
    expect(centre.takes).toBe(3);
    await store.reset([limit]);
    expect(await store.take([limit])).toMatchObject({ taken: true });
    const exact = resolvedLimit(
      compileTestLimit({ algorithm: "gcra", windows, counters: "exact", policy: "exact" }),
      "u",
    );
    const before = centre.takes;
    for (let i = 0; i < 3; i++) await store.take([exact]);
    expect(centre.takes).toBe(before + 3);
  });

  it("continue with what is in hand while the central store is unavailable, for the stale budget, and find it again", async () => {
    const limit = pinned();
    const under = await leasing(limit);
    const { store, centre } = under;
    centre.away = true;
    await under.pass(5000);
    expect(await store.take([limit])).toMatchObject({ taken: true });
    await settled();
    await under.pass(50_000);
    expect(store.stats.stale).toBe(1);
    expect(await store.take([limit])).toMatchObject({ taken: true });
    await under.pass(60_000);
    expect(() => store.take([limit])).toThrow(StoreUnavailable);
    centre.away = false;
    await under.pass(2000);
    await store.take([limit]);
    await settled();
    expect(await store.take([limit])).toMatchObject({ taken: true });
    expect(store.stats.stale).toBe(0);
    expect(store.stats.lost).toBeGreaterThan(0);
  });

  it("report to a central store that was certainly not asked what they would have reported, when it is back", async () => {
    const limit = pinned({ windows: [testWindow(10_000, 3_600_000)] });
    const under = await leasing(limit);
    const { store, centre } = under;
    const lease = centre.lease.bind(centre);
    const asks: LeaseAsk[] = [];
    Object.assign(centre, {
      lease: (limits: readonly ResolvedLimit[], ask: LeaseAsk) => {
        asks.push(ask);
        if (asks.length < 3) throw new StoreUnavailable("storage_unavailable", undefined, { mayBeDone: false });
        return lease(limits, ask);
      },
    });
    while (asks.length < 3) {
      await store.take([limit]);
      await under.pass(10);
    }
    const told = asks.map(({ settled: one }) => one!.spent);
    expect(told[2]).toBeGreaterThanOrEqual(told[0]!);
    await store.drain();
    expect(centre.lease([limit], { want: 0, holdMs: 1 })).toMatchObject({ unspent: 0 });
    expect(store.stats.lost).toBe(0);
  });

  it("remember request ids on this node, and in the central store those that were asked there", async () => {
    const limit = pinned();
    const { store, centre } = await leasing(limit);
    const { tokens } = store.stats;
    const options = { id: "one", fingerprint: "f" };
    const first = await store.take([limit], options);
    expect([first.taken, first.replayed]).toEqual([true, false]);
    expect(await store.take([limit], options)).toEqual({ ...first, replayed: true });
    expect(store.stats.tokens).toBe(tokens - 1);
    expect(() => store.take([limit], { ...options, fingerprint: "other" })).toThrow(/already used/);
    const cold = pinned({ counters: "auto", policy: "cold" });
    const asked = centre.takes;
    expect((await store.take([cold], { id: "two", fingerprint: "f" })).replayed).toBe(false);
    expect((await store.take([cold], { id: "two", fingerprint: "f" })).replayed).toBe(true);
    expect(centre.takes).toBe(asked + 2);
  });

  it("leave to the centre whatever wants a receipt, which is good there", async () => {
    const limit = pinned();
    const { store } = await leasing(limit);
    const { receipt } = await store.take([limit], { receipt: true });
    expect(await store.give(receipt!)).toBe(true);
  });

  it("give everything back when they are drained, and lease nothing after it", async () => {
    const limit = pinned({ windows: [testWindow(10_000, 3_600_000)] });
    const { store, centre } = await leasing(limit);
    await store.drain();
    expect(store.stats).toMatchObject({ leases: 0, tokens: 0 });
    expect(centre.lease([limit], { want: 0, holdMs: 1 })).toMatchObject({ unspent: 0 });
    const used = 10_000 - centre.peek([limit]).outcomes[0]!.remaining;
    expect(used).toBe(30);
    await store.take([limit]);
    expect(store.stats.leases).toBe(0);
  });

  it("give back what was set aside for a request that is denied while they are drained", async () => {
    const held = pinned({ policy: "held", windows: [testWindow(10_000, 3_600_000)] });
    const scarce = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(1, 3_600_000)] }), "u");
    const { store, centre } = await leasing(held);
    centre.take([scarce]);
    const take = centre.take.bind(centre);
    let answer: ((value: TakeAnswer) => void) | undefined;
    Object.assign(centre, { take: () => new Promise<TakeAnswer>((resolve) => (answer = resolve)) });
    const decided = store.take([held, scarce]);
    await store.drain();
    answer!(take([scarce]));
    expect(await decided).toMatchObject({ taken: false });
    await settled();
    expect(centre.lease([held], { want: 0, holdMs: 1 })).toMatchObject({ unspent: 0 });
    expect(10_000 - centre.peek([held]).outcomes[0]!.remaining).toBe(30);
  });

  it("give back after a burst what has not been asked for since", async () => {
    const limit = pinned({ windows: [testWindow(10_000, 3_600_000)] });
    const under = await leasing(limit);
    for (let i = 0; i < 100; i++) await under.store.take([limit]);
    await under.pass(12_000);
    expect(under.store.stats).toMatchObject({ leases: 0, tokens: 0, lost: 0 });
  });

  it("are drained in time, though the centre never answers", async () => {
    const limit = pinned();
    const clock = new ManualClock(conversationStartMs, 1000);
    const centre = new MemoryCounters({ clock });
    let answers = true;
    const silent: CentralCounters = Object.create(centre, {
      take: { value: (...args: Parameters<MemoryCounters["take"]>) => centre.take(...args) },
      lease: {
        value: (...args: Parameters<MemoryCounters["lease"]>) =>
          answers ? centre.lease(...args) : new Promise<LeaseAnswer>(() => undefined),
      },
    });
    const timers: (() => void)[] = [];
    const store = new LeasedCounters(silent, {
      clock,
      callLater: (work) => {
        timers.push(work);
        return () => undefined;
      },
    });
    for (let i = 0; i < 30; i++) await store.take([limit]);
    answers = false;
    const drained = store.drain(100);
    timers.at(-1)!();
    await drained;
  });

  it("give back the excess when less may be held now, and keep leases when a policy is only rewritten", async () => {
    const { store, centre } = await leasing(pinned());
    const { tokens } = store.stats;
    await store.take([pinned()]);
    expect(store.stats.tokens).toBe(tokens - 1);
    await store.take([pinned({ maxOvershoot: 0.01 })]);
    await settled();
    expect(centre.asks.at(-1)?.want === 0 || centre.asks.at(-2)?.want === 0).toBe(true);
    await store.take([pinned({ counters: "exact" })]);
    await settled();
    expect(store.stats.leases).toBe(0);
  });

  it("give back after an edit what the units were worth when they were granted", async () => {
    const before = pinned({ name: "n" });
    const { store, centre } = await leasing(before);
    const edited = pinned({ name: "n", windows: [testWindow(100, 1000)], counters: "auto" });
    await store.take([edited]);
    await settled();
    const ask = centre.asks.at(-1)!;
    expect(ask.settled?.returned).toBeGreaterThan(0);
    expect(centre.askedBy.at(-1)!.windows).toBe(before.windows);
    // One was taken at 10 ms. What came before it, at 0.1 ms each, has passed.
    expect(centre.read(edited)[0]!.state.aheadMs).toBe(10);
  });

  it.each<[string, Partial<TestLimit>]>([
    ["to exact counters", { counters: "exact" }],
    ["to a limit that may be blocked", { blockable: true }],
    ["to another limit with the same allowance", { windows: [testWindow(5000, 1000, 10_000)], maxOvershoot: 0.2 }],
    ["to another burst", { windows: [testWindow(10_000, 1000, 5000)] }],
    ["to another length", { windows: [testWindow(10_000, 2000)] }],
  ])("give everything back after an edit %s", async (_, edit) => {
    const { store, centre } = await leasing(pinned({ name: "n" }));
    const { tokens, local } = store.stats;
    await store.take([pinned({ name: "n", ...edit })]);
    await settled();
    expect(store.stats).toMatchObject({ local, returned: tokens });
    expect(centre.asks.filter(({ want }) => want === 0)).toHaveLength(1);
  });

  it("put back what was set aside if another limit is denied here", async () => {
    const limit = pinned();
    const { store, pass } = await leasing(limit);
    const scarce = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(1, 60_000)] }), "v");
    for (let i = 0; i < 3; i++) {
      await store.take([limit, scarce], { details: true });
      await pass(1);
    }
    const { tokens, spent } = store.stats;
    expect(tokens).toBeGreaterThan(3);
    for (let i = 0; i < 3; i++) expect((await store.take([limit, scarce])).taken).toBe(false);
    expect(store.stats).toMatchObject({ denials: 3, tokens, spent });
    await store.drain();
    expect(store.stats).toMatchObject({ tokens: 0, returned: tokens, lost: 0 });
  });

  it("give a few back at a time if many cool at once", async () => {
    const { store, pass } = open();
    for (let i = 0; i < 7000; i++) await store.take([pinned({}, `u${i}`)]);
    await pass(5000);
    let { leases } = store.stats;
    for (let sweeps = 0; sweeps < 40; sweeps++) {
      await pass(100);
      expect(leases - store.stats.leases).toBeLessThanOrEqual(500);
      ({ leases } = store.stats);
    }
    expect(leases).toBe(0);
  });

  it("spend nothing that was leased for one tier by another, and leave it to the first", async () => {
    const pro = pinned();
    const { store, centre } = await leasing(pro);
    const { tokens } = store.stats;
    const { takes, asks } = centre;
    const free = { ...pro, windows: compileTestLimit({ algorithm: "gcra", windows: [testWindow(100, 1000)] }).windows };
    await store.take([free]);
    const asker = { decide: () => true, fail: () => false };
    expect(await store.takeOne(free.limit, free.windows, "u", 1, {}, asker)).toMatchObject({ fits: "now" });
    expect(centre.takes).toBe(takes + 2);
    expect([store.stats.tokens, centre.asks.length]).toEqual([tokens, asks.length]);
    await store.take([pro]);
    expect(store.stats.tokens).toBe(tokens - 1);
  });

  it("report how an edited limit stands now, when they only peek", async () => {
    const { store, centre } = await leasing(pinned());
    const edited = pinned({ windows: [testWindow(100, 1000)] });
    expect((await store.peek([edited])).outcomes).toEqual(centre.peek([edited]).outcomes);
    expect(store.stats.leases).toBe(1);
  });

  it("peek as they would take, even if one limit is held here and used up in the central store", async () => {
    const limit = pinned({ algorithm: "fixed_window", windows: [testWindow(1000, 3_600_000)] });
    const user = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(2, 60_000)] }), "u");
    const { store, centre } = await leasing(limit);
    centre.charge([{ ...limit, cost: 1000 }]);
    for (const asked of [
      [limit, user],
      [user, limit],
    ]) {
      const looked = await store.peek(asked);
      expect(looked.taken).toBe(false);
      expect(looked.outcomes.map(({ fits, window }) => [fits, window])).toEqual(
        asked.map(({ windows }) => ["now", windows[0]]),
      );
    }
    expect((await store.take([limit, user])).taken).toBe(true);
  });

  it("report how a fixed window stands after it has ended", async () => {
    const limit = pinned({ algorithm: "fixed_window", windows: [testWindow(1000, 2000)] });
    const { store, clock } = await leasing(limit);
    clock.advance(2000);
    expect((await store.take([limit])).outcomes[0]).toMatchObject({ remaining: 1000, resetAfterMs: 0 });
  });

  it("report the central store's time, even if several limits are denied here", async () => {
    const clock = new ManualClock(conversationStartMs, 1000);
    const centre = new MemoryCounters({ clock: new ManualClock(conversationStartMs + 3_600_000) });
    const store = new LeasedCounters(centre, { clock });
    const scarce = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(1, 60_000)] }), "u");
    const both = [scarce, pinned({ policy: "other", counters: "auto" })];
    for (let i = 0; i < 2; i++) await store.take(both);
    clock.advance(10);
    const denied = await store.take(both);
    expect(store.stats.denials).toBe(1);
    expect(denied).toMatchObject({ taken: false, atMs: conversationStartMs + 3_600_010 });
  });

  it("recognize an id that the central store saw first, with a receipt or without", async () => {
    const limit = pinned();
    const { store } = await leasing(limit);
    const asked = { id: "r1", fingerprint: "f" };
    expect((await store.take([limit], { ...asked, receipt: true })).receipt).toBeDefined();
    expect(await store.take([limit], asked)).toMatchObject({ taken: true, replayed: true });
    expect((await store.take([limit], { ...asked, id: "r2" })).receipt).toBeUndefined();
    expect(await store.take([limit], { ...asked, id: "r2", receipt: true })).toMatchObject({ replayed: true });
    expect(() => store.take([limit], { id: "r2", fingerprint: "other" })).toThrow(/r2/);
  });

  it("report every decision and denial to the hot keys, with an id or a receipt too", async () => {
    const { store } = open();
    const limit = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(1, 60_000)] }), "u");
    for (let i = 0; i < 4; i++) await store.take([limit], { id: `r${i}` });
    for (let i = 0; i < 3; i++) await store.take([limit], { receipt: true });
    const [key] = store.hotKeys.top({ by: "denials", count: 1 });
    expect(key).toMatchObject({ subject: "u" });
    expect(key!.deniedPerSecond / key!.perSecond).toBeCloseTo(6 / 7, 3);
  });

  it.each([
    ["leaseMs", { leaseMs: 0.5 }],
    ["leaseMs", { leaseMs: Number.NaN }],
    ["staleMs", { staleMs: -1 }],
    ["staleMs", { leaseMs: 60_000, staleMs: 24 * 60 * 60 * 1000 }],
    ["refreshMs", { refreshMs: 0 }],
    ["hotPerSecond", { hotPerSecond: Number.NaN }],
    ["hotPerSecond", { hotPerSecond: -1 }],
    ["maxLeases", { maxLeases: Number.NaN }],
  ])("refuse a %s that no centre would grant anything by", (name, options) => {
    expect(() => open(options)).toThrow(name);
  });

  it("include what is held here in a reading", async () => {
    const limit = pinned();
    const { store } = await leasing(limit);
    const [reading] = await store.read(limit);
    expect(reading?.state.leasedHere).toBe(store.stats.tokens);
  });

  it("only watch hot keys if leasing is off", async () => {
    const under = open({ leasing: false });
    for (let i = 0; i < 100; i++) await under.store.take([pinned()]);
    expect(under.store.stats).toMatchObject({ leases: 0, central: 100 });
    expect(under.store.hotKeys.top({ by: "rate", count: 1 })).toMatchObject([{ policy: "test", subject: "u" }]);
    expect(under.store.leases).toBe(false);
  });

  it("lease no more counters than they may", async () => {
    const { store } = open({ maxLeases: 3 });
    for (let i = 0; i < 10; i++) await store.take([pinned({}, `u${i}`)]);
    expect(store.stats.leases).toBe(3);
  });
});

describe("a limiter on leased counters", () => {
  it("decides at once, with the same answers as a remote one", async () => {
    const clock = new ManualClock(conversationStartMs, 1000);
    const counters = new LeasedCounters(new MemoryCounters({ clock }), { clock });
    const policies = {
      policies: [{ id: "api", counters: "leased", limits: [{ by: ["user"], windows: ["100000/s"] }] }],
    };
    const limiter = createLimiter({ clock, counters, policies });
    const request = { dimensions: { user: "u" } };
    for (let i = 0; i < 10; i++) {
      await limiter.check(request);
      await settled();
    }
    const { local } = counters.stats;
    const decision = await limiter.check(request);
    expect(counters.stats.local).toBe(local + 1);
    // Of the very first check, which was charged at the centre after it had granted the lease, this node does not know.
    expect(decision).toMatchObject({ allowed: true, policy: "api", scope: "user", limit: 100_000, remaining: 99_990 });
    expect(await limiter.peek(request)).toMatchObject({ allowed: true, remaining: 99_990, preview: true });
    expect(() => limiter.checkSync(request)).toThrow(/checkSync/);
    await limiter.close();
  });
});

it("a subject whose requests alternate between two tiers gets no more of either than the limit and its allowance", async () => {
  const clock = new ManualClock(conversationStartMs, 1000);
  const counters = new LeasedCounters(new MemoryCounters({ clock }), { clock, callLater: () => () => undefined });
  const limits = [{ by: ["user"], windows: ["1000/s"], tiers: { pro: { windows: ["100000/s"] } } }];
  const limiter = createLimiter({ clock, counters, policies: { policies: [{ id: "api", limits }] } });
  const allowed = { free: 0, pro: 0 };
  for (let ms = 0; ms < 500; ms++) {
    for (const tier of ["pro", "free", "pro", "free", "pro", "free", "pro", "free"] as const) {
      if ((await limiter.check({ dimensions: { user: "u", tier } })).allowed) allowed[tier] += 1;
      await settled();
    }
    clock.advance(1);
  }
  expect(allowed.free).toBeLessThanOrEqual(1000 + 500 + 10);
  expect(counters.stats.local).toBeGreaterThan(0);
});

describe("a limiter that is asked for a lease", () => {
  const policies = {
    policies: [
      { id: "big", match: { endpoint: "/big" }, limits: [{ by: ["user"], windows: ["100000/s"] }], cost: 2 },
      {
        id: "small",
        match: { endpoint: "/exact" },
        counters: "exact",
        limits: [{ by: ["user"], windows: ["100000/s"] }],
      },
      {
        id: "denied",
        match: { endpoint: "/denied" },
        deny: { user: ["u"] },
        limits: [{ by: ["user"], windows: ["10/s"] }],
      },
      {
        id: "shadowed",
        match: { endpoint: "/shadowed" },
        mode: "shadow",
        limits: [{ by: ["user"], windows: ["100000/s"] }],
      },
    ],
    default: "none",
  };
  const at = (endpoint: string): { dimensions: Record<string, string> } => ({ dimensions: { user: "u", endpoint } });

  it("grants it, and says how such a request stands", async () => {
    const limiter = createLimiter({ policies });
    const grant = await limiter.lease(at("/big"), { want: 100, holdMs: 1000 });
    expect(grant).toMatchObject({ granted: 100, unspent: 100, decision: { allowed: true, cost: 2, preview: true } });
    const settled = { epoch: grant.epoch, spent: 40, kept: 0, returned: 60 };
    expect(await limiter.lease(at("/big"), { want: 0, holdMs: 1000, settled })).toMatchObject({
      granted: 0,
      unspent: 0,
    });
  });

  it.each([
    ["/exact", "has to be asked each time"],
    ["/denied", "denied by name"],
    ["/shadowed", "shadow mode"],
    ["/other", "no limit applies"],
  ])("says why not: %s", async (endpoint, why) => {
    const limiter = createLimiter({ policies });
    await expect(limiter.lease(at(endpoint), { want: 1, holdMs: 1000 })).rejects.toMatchObject({
      code: "not_leasable",
      message: expect.stringContaining(why),
    });
  });

  it("settles outstanding units under a kill switch, and grants nothing", async () => {
    const limiter = createLimiter({ policies });
    limiter.force({ mode: "open", untilMs: Date.now() + 60_000 });
    await expect(limiter.lease(at("/big"), { want: 1, holdMs: 1000 })).rejects.toThrow(/kill switch/);
    expect(await limiter.lease(at("/big"), { want: 0, holdMs: 1000 })).toMatchObject({ granted: 0 });
  });
});
