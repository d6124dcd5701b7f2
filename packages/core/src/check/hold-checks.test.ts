import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { MemoryCounters } from "../counters/memory-counters.ts";
import { StoreUnavailable } from "../counters/store-unavailable.ts";
import { createLimiter } from "../create-limiter.ts";
import type { ReserveRequest } from "../hold.ts";
import { LeasedCounters } from "../leases/leased-counters.ts";
import { failingCounters } from "../testing/index.ts";

const tokens = { id: "tokens", limits: [{ by: ["key"], windows: ["100/m"] }], on_failure: "open" };
const dimensions = { key: "k" };

function open(policies: readonly unknown[] = [tokens]) {
  const clock = new ManualClock();
  const limiter = createLimiter({ policies: { policies }, clock });
  const remaining = async (): Promise<number | undefined> => (await limiter.peek({ dimensions })).remaining;
  return { clock, limiter, remaining };
}

/** What people report of gateways that limit by tokens. */
describe("complaints about other gateways", () => {
  it("five calls at once do not spend 663 tokens of a key with 100", async () => {
    const { limiter, remaining } = open();
    const holds = await Promise.all(Array.from({ length: 5 }, () => limiter.reserve({ dimensions, amount: 40 })));
    expect(holds.map(({ decision }) => decision.allowed)).toEqual([true, true, false, false, false]);
    expect(holds[2]!.decision).toMatchObject({ reason: "over_limit", cost: 40, remaining: 20 });
    await Promise.all(holds.map((hold) => hold.settle(39)));
    expect(await remaining()).toBe(22);
  });

  it("the first request is not refused because an estimate exceeds the limit", async () => {
    const { limiter } = open();
    const hold = await limiter.reserve({ dimensions, estimate: 1024 });
    expect([hold.decision.allowed, hold.amount]).toEqual([true, 100]);
  });

  it("the policy's own estimate is cut as well", async () => {
    const { limiter } = open([{ ...tokens, cost: { "/chat": 5000 } }]);
    const hold = await limiter.reserve({ dimensions: { ...dimensions, endpoint: "/chat" } });
    expect([hold.decision.allowed, hold.amount]).toEqual([true, 100]);
  });

  it("an estimate is not cut to how many distinct users a limit allows", async () => {
    const seats = { id: "seats", limits: [{ by: ["key"], distinct: "user", windows: ["3/h"] }], on_failure: "open" };
    const { limiter, remaining } = open([tokens, seats]);
    const hold = await limiter.reserve({ dimensions: { ...dimensions, user: "ada" }, estimate: 40 });
    expect([hold.decision.allowed, hold.amount]).toEqual([true, 40]);
    await hold.settle(15);
    expect(await remaining()).toBe(85);
  });

  it("an amount that the caller insists on is refused for good if it never fits", async () => {
    const { limiter, remaining } = open();
    const { decision, id, amount } = await limiter.reserve({ dimensions, amount: 101 });
    expect(decision).toMatchObject({ allowed: false, reason: "never_fits", retryAfterMs: undefined });
    expect([id, amount]).toEqual([undefined, 101]);
    expect(await remaining()).toBe(100);
  });

  it("a denied hold charges no limit", async () => {
    const { limiter } = open([tokens, { ...tokens, id: "global", limits: [{ by: ["all"], windows: ["30/m"] }] }]);
    expect((await limiter.reserve({ dimensions, amount: 40 })).decision.allowed).toBe(false);
    const { limits = [] } = await limiter.check({ dimensions, preview: true, details: true });
    expect(limits.map(({ remaining }) => remaining)).toEqual([100, 30]);
  });

  it("a client that disconnects leaks nothing: what was not settled is there again in time", async () => {
    const { clock, limiter, remaining } = open();
    await limiter.reserve({ dimensions, amount: 90, ttlMs: 5000 });
    clock.advance(5000);
    expect(await remaining()).toBe(100);
  });

  it("two callbacks settle a request once", async () => {
    const { limiter, remaining } = open();
    const hold = await limiter.reserve({ dimensions, amount: 50 });
    const [one, other] = await Promise.all([hold.settle(20), hold.settle(70)]);
    expect(other).toBe(one);
    expect(await remaining()).toBe(80);
  });

  it("a late confirmation is charged, and says that it was late", async () => {
    const { clock, limiter, remaining } = open();
    const hold = await limiter.reserve({ dimensions, amount: 50, ttlMs: 1000 });
    clock.advance(2000);
    expect(await hold.settle(30)).toMatchObject({ state: "settled", expired: true, actual: 30 });
    // In two seconds three of the thirty have drained.
    expect(await remaining()).toBe(73);
  });

  it("a repeated reservation gets the hold that it got before, which can be settled", async () => {
    const { clock, limiter, remaining } = open();
    const request: ReserveRequest = { dimensions, amount: 50, id: "chat-1", ttlMs: 1000 };
    const first = await limiter.reserve(request);
    clock.advance(2000);
    const again = await limiter.reserve(request);
    expect(again).toMatchObject({ id: first.id, expiresAtMs: first.expiresAtMs, decision: { replayed: true } });
    expect(await again.settle(10)).toMatchObject({ state: "settled", expired: true });
    expect(await remaining()).toBeGreaterThanOrEqual(90);
    await expect(limiter.reserve({ ...request, amount: 60 })).rejects.toMatchObject({ code: "idempotency_conflict" });
  });

  it("plain checks count what is held", async () => {
    const { limiter } = open();
    await limiter.reserve({ dimensions, amount: 90 });
    expect(limiter.checkSync({ dimensions, cost: 11 }).allowed).toBe(false);
    expect((await limiter.explain({ dimensions })).decision.remaining).toBe(10);
  });

  it("a limit is refused at the number that it shows as left, plus one", async () => {
    const { limiter } = open();
    await limiter.reserve({ dimensions, amount: 90 });
    expect((await limiter.reserve({ dimensions, amount: 11 })).decision.allowed).toBe(false);
    expect((await limiter.reserve({ dimensions, amount: 10 })).decision.allowed).toBe(true);
  });

  it("a budget may last a month", async () => {
    const { limiter, remaining } = open([
      { ...tokens, limits: [{ by: ["key"], windows: ["1000000/month in UTC"], algorithm: "fixed_window" }] },
    ]);
    const hold = await limiter.reserve({ dimensions, amount: 900_000 });
    await hold.settle(850_000);
    expect(await remaining()).toBe(150_000);
  });
});

describe("a hold", () => {
  it("of a stream is reported about while it runs, extended, and settled by its id elsewhere", async () => {
    const { clock, limiter, remaining } = open();
    const hold = await limiter.reserve({ dimensions, amount: 50, ttlMs: 10_000 });
    expect(await hold.commit(20, { last: false })).toMatchObject({ state: "held", actual: 20 });
    clock.advance(5000);
    expect(await hold.extend(10_000)).toMatchObject({ state: "held", expiresAtMs: hold.expiresAtMs! + 5000 });
    expect(await limiter.commit(hold.id!, 60)).toMatchObject({ state: "settled", overdraft: 10 });
    expect(await remaining()).toBe(48);
    expect(await hold.cancel()).toMatchObject({ actual: 60, replayed: true });
  });

  it("settles what it was reserved by, after policies changed", async () => {
    const { limiter } = open();
    const hold = await limiter.reserve({ dimensions, amount: 50 });
    limiter.usePolicies({ policies: [{ ...tokens, id: "others" }] });
    await hold.settle(10);
    limiter.usePolicies({ policies: [tokens] });
    expect((await limiter.peek({ dimensions })).remaining).toBe(90);
  });

  it("is none where a list denies, or no limit applies", async () => {
    const { limiter } = open([{ ...tokens, deny: { key: ["bad"] } }]);
    const denied = await limiter.reserve({ dimensions: { key: "bad" }, amount: 5 });
    expect([denied.decision.reason, denied.id, await denied.settle(5)]).toEqual(["deny_list", undefined, undefined]);
    limiter.usePolicies({ policies: [{ id: "free", unlimited: true }] });
    const free = await limiter.reserve({ dimensions, amount: 5 });
    expect([free.decision.reason, free.id, await free.settle(5)]).toEqual(["unlimited", undefined, undefined]);
  });

  it("is none while every decision is forced", async () => {
    const { clock, limiter, remaining } = open();
    limiter.force({ mode: "open", untilMs: clock.epochMs() + 1000 });
    const hold = await limiter.reserve({ dimensions, amount: 5000 });
    expect([hold.decision.allowed, hold.id, await hold.settle(7)]).toEqual([true, undefined, undefined]);
    clock.advance(2000);
    expect(await remaining()).toBe(100);
  });

  it.each([
    [{ amount: 0 }, "amount"],
    [{ amount: 1.5 }, "amount"],
    [{ estimate: 10_000_001 }, "estimate"],
    [{ amount: 1, estimate: 1 }, "estimate"],
    [{ ttlMs: 0 }, "ttlMs"],
    [{ id: "" }, "id"],
  ])("refuses %j", async (wrong, field) => {
    const { limiter } = open();
    const problems = [{ path: [field] }];
    await expect(limiter.reserve({ dimensions, ...wrong })).rejects.toMatchObject({
      code: "invalid_request",
      problems,
    });
  });

  it("refuses a report or an extension that is no whole number", async () => {
    const { limiter } = open();
    const { id } = await limiter.reserve({ dimensions, amount: 5 });
    await expect(limiter.commit(id!, -1)).rejects.toMatchObject({ code: "invalid_request" });
    await expect(limiter.extend(id!, 0.5)).rejects.toMatchObject({ code: "invalid_request" });
    await expect(limiter.cancel(5 as never)).rejects.toMatchObject({ code: "invalid_request" });
  });

  it("is refused by name where counters keep none", async () => {
    const counters = failingCounters();
    await expect(createLimiter({ counters }).reserve({ amount: 1 })).rejects.toMatchObject({ code: "not_holdable" });
    await expect(createLimiter({ counters }).commit("h", 1)).rejects.toMatchObject({ code: "not_holdable" });
  });

  it("counts below leases too, and is decided by the central store", async () => {
    const clock = new ManualClock();
    const counters = new LeasedCounters(new MemoryCounters({ clock }), { clock });
    const limiter = createLimiter({ policies: { policies: [tokens] }, counters, clock });
    const hold = await limiter.reserve({ dimensions, amount: 90 });
    expect((await limiter.check({ dimensions, cost: 11 })).allowed).toBe(false);
    await hold.settle(0);
    clock.advance(1000);
    expect((await limiter.check({ dimensions, cost: 11 })).allowed).toBe(true);
    await limiter.close();
  });
});

describe("while counters are unavailable", () => {
  it("policies decide, nothing is held, and settling charges what it was as soon as it can", async () => {
    const memory = new MemoryCounters({ clock: new ManualClock() });
    let down = true;
    const counters = Object.assign(Object.create(memory) as MemoryCounters, {
      take: (...asked: Parameters<MemoryCounters["take"]>) => {
        if (down) throw new StoreUnavailable("storage_unavailable");
        return memory.take(...asked);
      },
      charge: (...asked: Parameters<MemoryCounters["charge"]>) => {
        if (down) throw new StoreUnavailable("storage_unavailable");
        memory.charge(...asked);
      },
      peek: memory.peek.bind(memory),
      holds: memory.holds,
      local: false,
    });
    const limiter = createLimiter({ policies: { policies: [tokens] }, counters });
    const hold = await limiter.reserve({ dimensions, amount: 50 });
    expect(hold.decision).toMatchObject({ allowed: true, reason: "degraded", degraded: "storage_unavailable" });
    expect(hold.id).toBeUndefined();
    await expect(hold.settle(30)).rejects.toThrow(StoreUnavailable);
    down = false;
    expect(await hold.settle(30)).toBeUndefined();
    expect(await hold.settle(30)).toBeUndefined();
    expect((await limiter.peek({ dimensions })).remaining).toBe(70);
  });
});
