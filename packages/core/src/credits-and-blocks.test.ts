import { describe, expect, it } from "vitest";
import { ManualClock } from "./clock.ts";
import type { CounterStore } from "./counters/counter-store.ts";
import { MemoryCounters } from "./counters/memory-counters.ts";
import { StoreUnavailable } from "./counters/store-unavailable.ts";
import { createLimiter } from "./create-limiter.ts";
import type { Limiter } from "./limiter.ts";
import type { Algorithm } from "./policy/policy.ts";
import { algorithms } from "./policy/policy.ts";
import { onePolicy as one, openLimiter as open, byUser as user } from "./testing/open-limiter.ts";

const hourMs = 3_600_000;

describe("a credit", () => {
  it.each(algorithms)("gives back without a receipt, down to empty: %s", async (algorithm: Algorithm) => {
    const { limiter } = open(one("10/h", { algorithm }));
    const left = (): number | undefined => limiter.checkSync({ ...user("u"), preview: true }).remaining;
    await limiter.charge({ ...user("u"), cost: -5 });
    expect(left()).toBe(10);
    limiter.checkSync({ ...user("u"), cost: 7 });
    await limiter.charge({ ...user("u"), cost: -4 });
    expect(left()).toBe(7);
    await limiter.charge({ ...user("u"), cost: -100_000 });
    expect(left()).toBe(10);
  });

  it("goes to every limit of the request, each by its own windows, and to no counter of others", async () => {
    const { limiter } = open({
      policies: [
        { id: "p", limits: [{ by: "user", windows: ["10/m", "20/h"] }] },
        { id: "s", mode: "shadow", limits: [{ by: "tenant", windows: "30/h" }] },
      ],
    });
    const request = user("u", { tenant: "t" });
    limiter.checkSync({ ...request, cost: 8 });
    limiter.checkSync({ ...user("v", { tenant: "t" }), cost: 8 });
    await limiter.charge({ ...request, cost: -5 });
    const { limits } = limiter.checkSync({ ...request, preview: true, details: true });
    expect(limits?.map(({ remaining }) => remaining)).toEqual([7, 19]);
    expect(limiter.checkSync({ ...user("v"), preview: true }).remaining).toBe(2);
  });

  it("gives a counter that two limits share back what it was charged", async () => {
    const limits = [
      { by: "user", windows: { limit: 5, per: "1h", burst: 10 } },
      { by: "user", windows: { limit: 10, per: "1h", burst: 10 } },
    ];
    const { limiter } = open({ policies: [{ id: "p", limits }] });
    limiter.checkSync({ ...user("u"), cost: 4 });
    const [slow, fast] = limiter.checkSync({ ...user("u"), preview: true, details: true }).limits ?? [];
    expect([slow?.remaining, fast?.remaining]).toEqual([6, 2]);
    await limiter.charge({ ...user("u"), cost: -4 });
    const after = limiter.checkSync({ ...user("u"), preview: true, details: true }).limits;
    expect(after?.map(({ remaining, resetAfterMs }) => [remaining, resetAfterMs])).toEqual([
      [10, 0],
      [10, 0],
    ]);
  });

  it("that is rounded is rounded down", async () => {
    // 333 333 a second: a unit is worth 3.0000030…, and not quite that much is given back.
    const { limiter } = open(one({ limit: 333_333, per: "1s", burst: 100_000 }));
    limiter.checkSync({ ...user("u"), cost: 100_000 });
    for (let i = 0; i < 1000; i++) await limiter.charge({ ...user("u"), cost: -1 });
    const { remaining } = limiter.checkSync({ ...user("u"), preview: true });
    expect(remaining).toBeLessThanOrEqual(1000);
    expect(remaining).toBeGreaterThanOrEqual(999);
  });

  it.each([0, -0, 1.5, -1.5, -100_001, 100_001, Number.NaN, "-1", null])(
    "is not %j, and the field is named",
    async (cost) => {
      const { limiter } = open(one("10/h"));
      await expect(limiter.charge({ ...user("u"), cost: cost as number })).rejects.toMatchObject({
        code: "invalid_request",
        problems: [{ path: ["cost"], message: expect.stringMatching(/^must be a whole number .* to give back, not /) }],
      });
      await expect(limiter.charge({ ...user("u"), cost: 0, preview: true })).rejects.toMatchObject({
        problems: [{ path: ["cost"] }],
      });
    },
  );

  it("is for charges alone: otherwise a cost below 0 is refused by name", async () => {
    const { limiter } = open(one("10/h", { blockable: true }));
    const request = { ...user("u"), cost: -1 };
    const problems = [
      { path: ["cost"], message: "must be a whole number from 1 to 100000 (below 0 only in a charge), not -1" },
    ];
    for (const asked of [
      limiter.check(request),
      limiter.check({ ...request, preview: true }),
      limiter.reset(request),
      limiter.explain(request),
      limiter.block(request, 1000),
    ]) {
      await expect(asked).rejects.toMatchObject({ code: "invalid_request", problems });
    }
  });
});

describe("a block", () => {
  it.each(algorithms)("denies as after a denial under block_for: %s", async (algorithm: Algorithm) => {
    const byDenial = open(one("2/s", { algorithm, block_for: "1m" }));
    const byHand = open(one("2/s", { algorithm, blockable: true }));
    for (const { limiter } of [byDenial, byHand]) limiter.checkSync({ ...user("u"), cost: 2 });
    byDenial.limiter.checkSync(user("u"));
    await byHand.limiter.block(user("u"), 60_000);
    for (const atMs of [0, 500, 5000, 59_999, 60_000]) {
      const decisions = [byDenial, byHand].map(({ limiter, clock }) => {
        clock.advance(atMs - clock.nowMs());
        const { state, denyCount, ...rest } = limiter.checkSync({ ...user("u"), details: true });
        return rest;
      });
      expect(decisions[1]).toEqual(decisions[0]);
      expect(decisions[1]).toMatchObject(
        atMs < 60_000
          ? { allowed: false, reason: "blocked", retryAfterMs: 60_000 - atMs, policy: "p" }
          : { allowed: true, reason: "within_limits" },
      );
    }
  });

  it("denies although there is room, in previews as well, and is lifted by a reset", async () => {
    const { limiter } = open(one("10/h", { blockable: true }));
    await limiter.block(user("u"), hourMs);
    for (const preview of [true, false]) {
      expect(limiter.checkSync({ ...user("u"), preview })).toMatchObject({
        allowed: false,
        reason: "blocked",
        remaining: 0,
        retryAfterMs: hourMs,
      });
    }
    expect(limiter.checkSync(user("v")).allowed).toBe(true);
    await limiter.reset(user("u"));
    expect(limiter.checkSync(user("u")).allowed).toBe(true);
  });

  it("is never shortened, and put off by one that ends later", async () => {
    const { limiter, clock } = open(one("10/h", { blockable: true }));
    const waitMs = (): number | undefined => limiter.checkSync(user("u")).retryAfterMs;
    await limiter.block(user("u"), 10_000);
    await limiter.block(user("u"), 9999);
    expect(waitMs()).toBe(10_000);
    clock.advance(5000);
    await limiter.block(user("u"), 5001);
    expect(waitMs()).toBe(5001);
    clock.advance(5001);
    expect(limiter.checkSync(user("u")).allowed).toBe(true);
    await limiter.block(user("u"), 1);
    expect(waitMs()).toBe(1);
  });

  it("is by every limit of the request that is blockable, or of the policies it names", async () => {
    const { limiter } = open({
      policies: [
        { id: "a", limits: [{ by: "user", windows: "10/h", blockable: true }] },
        { id: "b", limits: [{ by: "ip", windows: "10/h", block_for: "1m" }] },
        { id: "c", limits: [{ by: "tenant", windows: "10/h" }] },
      ],
    });
    const dimensions = { user: "u", ip: "192.0.2.1", tenant: "t" };
    await limiter.block({ dimensions, policies: ["a"] }, hourMs);
    const reasons = (): unknown =>
      limiter.checkSync({ dimensions, preview: true, details: true }).limits?.map(({ reason }) => reason);
    expect(reasons()).toEqual(["blocked", "within_limits", "within_limits"]);
    await limiter.block({ dimensions }, hourMs);
    expect(reasons()).toEqual(["blocked", "blocked", "within_limits"]);
  });

  it.each([
    ["no limit of its policies is blockable", one("10/h"), /by policy p: /],
    [
      "of several policies none has such a limit",
      {
        policies: [
          { id: "a", limits: [{ by: "user", windows: "1/h" }] },
          { id: "b", limits: [{ by: "user", windows: "1/h" }] },
        ],
      },
      /by policy a, b: a limit that applies to it needs blockable: true, or block_for$/,
    ],
    [
      "only shadow limits are, which keep no subject out",
      {
        policies: [{ id: "s", mode: "shadow", limits: [{ by: "user", windows: "1/h", blockable: true }] }],
        default: "none",
      },
      /by policy s: a limit that applies to it, of a policy that is enforced, needs/,
    ],
    ["the default limits it", { policies: [] }, /by policy default: /],
    ["nothing limits it", { policies: [], default: "none" }, /no policy applies to it$/],
  ])("is refused, and not silently left out, if %s", async (_, document, message) => {
    const { limiter } = open(document);
    await expect(limiter.block(user("u"), hourMs)).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringMatching(message),
    });
  });

  it.each([0, -1, 1.5, 30 * 24 * hourMs + 1, Number.NaN, Number.POSITIVE_INFINITY, "1", undefined])(
    "is not for %s ms, and the field is named",
    async (forMs) => {
      const { limiter } = open(one("10/h", { blockable: true }));
      await expect(limiter.block(user("u"), forMs as number)).rejects.toMatchObject({
        code: "invalid_request",
        problems: [{ path: ["forMs"] }],
      });
    },
  );

  it("survives edits, though it is not looked up while the limit is not blockable", async () => {
    const { limiter } = open(one("10/h", { blockable: true }));
    await limiter.block(user("u"), hourMs);
    limiter.usePolicies(one("5/h", { blockable: true }));
    expect(limiter.checkSync(user("u")).reason).toBe("blocked");
    limiter.usePolicies(one("5/h"));
    expect(limiter.checkSync(user("u")).allowed).toBe(true);
    limiter.usePolicies(one("5/h", { blockable: true }));
    expect(limiter.checkSync(user("u")).reason).toBe("blocked");
  });

  it("is the last to be forgotten when memory is full", async () => {
    const clock = new ManualClock();
    const counters = new MemoryCounters({ clock, maxCounters: 100 });
    const limiter = createLimiter({ clock, counters, policies: one("10/h", { blockable: true }) });
    await limiter.block(user("u"), hourMs);
    for (let i = 0; i < 5000; i++) limiter.checkSync(user(`x${i}`));
    expect(limiter.checkSync(user("u")).reason).toBe("blocked");
  });

  it("is seen at once, whatever was previewed before", async () => {
    const clock = new ManualClock();
    const limiter = createLimiter({
      clock,
      counters: elsewhere(new MemoryCounters({ clock })),
      policies: one("10/h", { blockable: true }),
    });
    const previewed = async (): Promise<boolean> => (await limiter.check({ ...user("u"), preview: true })).allowed;
    expect(await previewed()).toBe(true);
    await limiter.block(user("u"), hourMs);
    expect(await previewed()).toBe(false);
  });
});

/** Counters that answer a turn later, or are unavailable. */
function elsewhere(memory: MemoryCounters, away = { now: false }): CounterStore {
  async function reach<T>(ask: () => T): Promise<T> {
    if (away.now) throw new StoreUnavailable("storage_timeout");
    return ask();
  }
  return {
    local: false,
    take: (limits, options) => reach(() => memory.take(limits, options)),
    peek: (limits) => reach(() => memory.peek(limits)),
    give: (receipt) => reach(() => memory.give(receipt)),
    charge: (limits) => reach(() => memory.charge(limits)),
    block: (limits, forMs) => reach(() => memory.block(limits, forMs)),
    reset: (limits) => reach(() => memory.reset(limits)),
    read: (limit) => reach(() => memory.read(limit)),
    close: () => memory.close(),
  };
}

describe("while counters are unavailable", () => {
  function openAway(onFailure: string): { readonly limiter: Limiter; readonly away: { now: boolean } } {
    const clock = new ManualClock();
    const away = { now: true };
    const counters = elsewhere(new MemoryCounters({ clock }), away);
    const limits = [{ by: "user", windows: "10/h", blockable: true }];
    const policies = { policies: [{ id: "p", on_failure: onFailure, limits }] };
    return { limiter: createLimiter({ clock, counters, policies }), away };
  }

  it("a credit goes to this node's own, if the policy fails local", async () => {
    const { limiter, away } = openAway("local");
    await limiter.charge({ ...user("u"), cost: -3 });
    expect((await limiter.check({ ...user("u"), cost: 4 })).remaining).toBe(1);
    await limiter.charge({ ...user("u"), cost: -3 });
    expect((await limiter.check({ ...user("u"), preview: true })).remaining).toBe(4);
    away.now = false;
    expect((await limiter.check({ ...user("u"), cost: 4 })).remaining).toBe(6);
  });

  it.each(["open", "closed"])("a credit is rejected if the policy fails %s", async (onFailure) => {
    const { limiter } = openAway(onFailure);
    await expect(limiter.charge({ ...user("u"), cost: -3 })).rejects.toBeInstanceOf(StoreUnavailable);
  });

  it.each(["open", "closed", "local"])("a block is rejected if the policy fails %s", async (onFailure) => {
    const { limiter, away } = openAway(onFailure);
    await expect(limiter.block(user("u"), hourMs)).rejects.toMatchObject({ reason: "storage_timeout" });
    away.now = false;
    expect((await limiter.check(user("u"))).allowed).toBe(true);
  });
});
