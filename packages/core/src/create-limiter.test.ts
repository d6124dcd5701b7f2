import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "./clock.ts";
import type { CounterStore, PeekOptions } from "./counters/counter-store.ts";
import { MemoryCounters } from "./counters/memory-counters.ts";
import { createLimiter } from "./create-limiter.ts";
import { SluiceError } from "./errors.ts";
import { renderExplanation } from "./explain.ts";
import { LeasedCounters } from "./leases/leased-counters.ts";
import type { Policy } from "./policy/policy.ts";
import type { CheckRequest } from "./request/check-request.ts";
import { failingCounters } from "./testing/failing-counters.ts";
import {
  onePolicy as one,
  openLimiter as open,
  limiterStartMs as start,
  byUser as user,
} from "./testing/open-limiter.ts";

describe("a decision", () => {
  it("carries everything a caller needs", () => {
    const { limiter } = open({
      policies: [{ id: "api.read", version: 47, limits: [{ by: ["tenant"], windows: ["100/s burst 200", "3000/m"] }] }],
    });
    expect(limiter.checkSync({ dimensions: { tenant: "t7" }, cost: 3 })).toEqual({
      allowed: true,
      reason: "within_limits",
      cost: 3,
      policy: "api.read",
      version: 47,
      scope: "tenant",
      window: { limit: 100, per: { kind: "ms", ms: 1000 }, burst: 200 },
      limit: 200,
      remaining: 197,
      limitRemaining: 197,
      used: 3,
      retryAfterMs: undefined,
      resetAfterMs: 30,
      resetAtMs: start + 30,
      moreAfterMs: 10,
      queue: undefined,
      state: "normal",
      denyCount: 0,
      replayed: false,
      preview: false,
      degraded: undefined,
      shadow: [],
      limits: undefined,
      receipt: undefined,
    });
  });

  it("explains a denial by the longest wait and an allowance by the smallest share left", () => {
    const { limiter } = open({
      policies: [
        { id: "minute", limits: [{ by: ["user"], windows: "10/m" }] },
        { id: "hour", limits: [{ by: ["user"], windows: "12/h" }] },
      ],
    });
    expect(limiter.checkSync({ ...user("u"), cost: 6 })).toMatchObject({
      allowed: true,
      policy: "minute",
      remaining: 4,
    });
    expect(limiter.checkSync({ ...user("u"), cost: 8 })).toMatchObject({
      allowed: false,
      policy: "hour",
      used: 6,
      remaining: 4,
      limitRemaining: 6,
    });
    expect(limiter.checkSync({ ...user("u"), cost: 4 })).toMatchObject({
      allowed: true,
      policy: "minute",
      remaining: 0,
    });
  });

  it("has left what passes every window, whichever window decides", () => {
    const { limiter, clock } = open(one(["100/s", "3000/m", "100000/h"]));
    // As fast as the second allows, so that the minute has the smallest share left.
    for (let second = 0; second < 40; second++) {
      limiter.checkSync({ ...user("u"), cost: 100 });
      clock.advance(1000);
    }
    const { remaining } = limiter.checkSync({ ...user("u"), cost: 40, preview: true });
    expect(remaining).toBe(100);
    expect(limiter.checkSync({ ...user("u"), cost: 101, preview: true }).allowed).toBe(false);
    expect(limiter.checkSync({ ...user("u"), cost: 100 }).allowed).toBe(true);
  });

  it("has left what passes every limit, and says what the deciding one has", () => {
    const { limiter } = open({
      policies: [
        { id: "tenants", limits: [{ by: ["tenant"], windows: "1000/h" }] },
        { id: "users", limits: [{ by: ["user"], windows: "10/h" }] },
      ],
    });
    for (let i = 0; i < 101; i++) limiter.checkSync({ dimensions: { tenant: "t", user: `u${i % 100}` }, cost: 6 });
    const ask = { dimensions: { tenant: "t", user: "new" } };
    expect(limiter.checkSync({ ...ask, preview: true })).toMatchObject({
      policy: "tenants",
      limit: 1000,
      used: 600,
      limitRemaining: 400,
      remaining: 10,
    });
    expect(limiter.checkSync({ ...ask, cost: 11 })).toMatchObject({ allowed: false, remaining: 10 });
    expect(limiter.checkSync({ ...ask, cost: 10 })).toMatchObject({ allowed: true, remaining: 0 });
  });

  it.each(["fixed_window", "sliding_window"])("is reset at the very end of an aligned window: %s", (algorithm) => {
    const { limiter, clock } = open(one("5/m", { algorithm }));
    const endMs = start - (start % 60_000) + (algorithm === "fixed_window" ? 60_000 : 120_000);
    for (const aheadMs of [0.3, 0.3, 0.5]) {
      clock.advance(aheadMs);
      expect(limiter.checkSync(user("u")).resetAtMs).toBe(endMs);
    }
  });

  it("answers for every limit if details are asked for", () => {
    const { limiter } = open({
      policies: [
        {
          id: "p",
          limits: [
            { by: ["tenant"], windows: "5/m" },
            { name: "per-user", by: ["tenant", "user"], windows: "1/m" },
          ],
        },
      ],
    });
    const ask = { dimensions: { tenant: "t", user: "u" }, details: true };
    limiter.checkSync(ask);
    expect(limiter.checkSync(ask).limits).toMatchObject([
      { scope: "tenant", subject: "t", allowed: true, remaining: 4 },
      { scope: "per-user", subject: "t|u", allowed: false, remaining: 0, retryAfterMs: 60_000 },
    ]);
  });

  it("is the same by the straight way and by the way round", () => {
    const requests = fc.array(
      fc.record({ user: fc.constantFrom("a", "b", ""), cost: fc.integer({ min: 1, max: 5 }), afterMs: fc.nat(400) }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(
        fc.constantFrom("4/s", "3/s burst 9", "2/s"),
        fc.constantFrom("gcra", "leaky_bucket"),
        requests,
        (windows, algorithm, asked) => {
          const straight = open(one(windows, { algorithm }));
          const round = open(one(windows, { algorithm }));
          for (const { user: name, cost, afterMs } of asked) {
            straight.clock.advance(afterMs);
            round.clock.advance(afterMs);
            const { limits, ...decision } = round.limiter.checkSync({ ...user(name), cost, details: true });
            expect(limits).toHaveLength(1);
            expect(straight.limiter.checkSync({ ...user(name), cost })).toEqual({ ...decision, limits: undefined });
          }
        },
      ),
    );
  });

  it("is the same on both paths if subjects have tiers and overrides", () => {
    const asked = fc.record({
      user: fc.constantFrom("a", "b", "c", "d"),
      tier: fc.constantFrom("", "premium", "many"),
      cost: fc.integer({ min: 1, max: 5 }),
      afterMs: fc.nat(400),
    });
    const tiers = { premium: { windows: "9/s" }, many: { windows: ["9/s", "20/m"] } };
    const policies = {
      policies: [{ id: "p", limits: [{ by: ["user"], windows: "4/s", tiers }] }],
      subjects: [
        { user: "a", tier: "premium" },
        { user: "b", tier: "many" },
        { user: "c", limits: [{ policy: "p", windows: "7/s burst 8" }] },
      ],
    };
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 60 }), (requests) => {
        const straight = open(policies);
        const round = open(policies);
        for (const { user: name, tier, cost, afterMs } of requests) {
          straight.clock.advance(afterMs);
          round.clock.advance(afterMs);
          const request = { dimensions: { user: name, ...(tier === "" ? {} : { tier }) }, cost };
          const { limits: _, ...decision } = round.limiter.checkSync({ ...request, details: true });
          expect(straight.limiter.checkSync(request)).toEqual({ ...decision, limits: undefined });
        }
      }),
    );
  });

  it("comes as a promise too, and so do the caller's mistakes", async () => {
    const { limiter } = open(one("1/m"));
    await expect(limiter.check(user("u"))).resolves.toMatchObject({ allowed: true });
    await expect(limiter.check({ ...user("u"), cost: 0 })).rejects.toMatchObject({ code: "invalid_request" });
  });
});

describe("state and deny count", () => {
  it("warns above 80 %, is normal again under 70 %, throttled at a denial, warning when allowed again", () => {
    const { limiter, clock } = open(one("10/10s"));
    const ask = (cost = 1): string => limiter.checkSync({ ...user("u"), cost }).state;
    expect(ask(8)).toBe("normal");
    expect(ask()).toBe("warning");
    clock.advance(2000);
    expect(ask()).toBe("warning"); // 80 % again: still warning, because it was
    expect(ask(5)).toBe("throttled");
    clock.advance(1000);
    expect(ask()).toBe("warning"); // allowed again at 80 %
    clock.advance(3000);
    expect(ask()).toBe("normal"); // 60 %
  });

  it("stays a warning between 70 and 80 %, if it was one", () => {
    const { limiter, clock } = open(one("20/20s"));
    const ask = (cost = 1): string => limiter.checkSync({ ...user("u"), cost }).state;
    expect(ask(15)).toBe("normal");
    expect(ask(2)).toBe("warning");
    clock.advance(3000);
    expect(ask()).toBe("warning"); // 75 %
    clock.advance(3000);
    expect(ask()).toBe("normal"); // 65 %
    clock.advance(0);
    expect(ask(2)).toBe("normal"); // 75 %, this time from below
  });

  it("counts denied cost in a row, and forgets it at an allowance", () => {
    const { limiter, clock } = open(one("2/s"));
    const ask = (cost: number): number => limiter.checkSync({ ...user("u"), cost }).denyCount;
    expect([ask(2), ask(2), ask(1), ask(2)]).toEqual([0, 2, 3, 5]);
    clock.advance(500);
    expect(ask(1)).toBe(0);
    expect(ask(1)).toBe(1);
  });

  it("takes the warning threshold from the policy", () => {
    const { limiter } = open({ policies: [{ id: "p", warn_at: "50%", limits: [{ by: "user", windows: "10/m" }] }] });
    expect(limiter.checkSync({ ...user("u"), cost: 6 }).state).toBe("warning");
  });

  it("comes back to normal from any threshold, and forgets denials of long ago", () => {
    const { limiter, clock } = open({
      policies: [{ id: "p", warn_at: 0.1, limits: [{ by: "user", windows: "100/h" }] }],
    });
    expect(limiter.checkSync({ ...user("u"), cost: 50 }).state).toBe("warning");
    clock.advance(1_700_000);
    expect(limiter.checkSync(user("u")).state).toBe("normal");
    limiter.checkSync({ ...user("v"), cost: 100 });
    expect(limiter.checkSync({ ...user("v"), cost: 5 }).denyCount).toBe(5);
    clock.advance(30 * 24 * 3_600_000);
    expect(limiter.checkSync({ ...user("v"), cost: 101 }).denyCount).toBe(101);
  });

  it("is throttled by a one-off quota that is used up", () => {
    const { limiter } = open(one("3 once"));
    limiter.checkSync({ ...user("u"), cost: 3 });
    expect(limiter.checkSync(user("u"))).toMatchObject({ reason: "never_fits", state: "throttled" });
  });

  it("is not throttled by a cost that never fits", () => {
    const { limiter } = open(one("10/m"));
    expect(limiter.checkSync({ ...user("u"), cost: 11 })).toMatchObject({ state: "normal", denyCount: 11 });
    expect(limiter.checkSync(user("u"))).toMatchObject({ state: "normal", denyCount: 0 });
  });

  it("is not moved by previews", () => {
    const { limiter } = open(one("1/m"));
    limiter.checkSync(user("u"));
    expect(limiter.checkSync({ ...user("u"), preview: true })).toMatchObject({ state: "throttled", denyCount: 1 });
    expect(limiter.checkSync({ ...user("u"), preview: true })).toMatchObject({ state: "throttled", denyCount: 1 });
  });
});

describe("cost", () => {
  it.each([0, -1, 1.5, 100_001, Number.NaN, "1", null])("refuses %j, naming the field", (cost) => {
    const { limiter } = open(one("10/m"));
    expect(() => limiter.checkSync({ ...user("u"), cost: cost as number })).toThrow(
      /^cost must be a whole number from 1 to 100000/,
    );
  });

  it("comes from the most specific pattern of the policy's map, unless the request has one", () => {
    const { limiter } = open({
      policies: [
        {
          id: "p",
          limits: [{ by: ["user"], windows: "1000/h" }],
          cost: {
            "/v1/**": 2,
            "/v1/{x}/export": 3,
            "/v1/orders": 7,
            "/v1/orders/**": 4,
            "/v1/orders/export": 10,
            "/v1/orders/*": 5,
          },
        },
      ],
    });
    const findCost = (endpoint: string): number => limiter.checkSync(user("u", { endpoint })).cost;
    expect(
      ["/v1/orders/export", "/v1/orders/7", "/v1/orders", "/v1/orders/7/x", "/v1/users/export", "/v1/users", "/v2"].map(
        findCost,
      ),
    ).toEqual([10, 5, 7, 4, 3, 2, 1]);
    expect(limiter.checkSync({ ...user("u", { endpoint: "/v1/orders/export" }), cost: 4 }).cost).toBe(4);
  });

  it("applies as a plain number to requests without an endpoint too", () => {
    const { limiter } = open({ policies: [{ id: "p", cost: 5, limits: [{ by: "user", windows: "10/m" }] }] });
    expect(limiter.checkSync(user("u"))).toMatchObject({ cost: 5, remaining: 5 });
  });

  it("larger than the burst gets the answer that it never fits, with no retry-after", () => {
    const { limiter } = open(one("10/m burst 20"));
    expect(limiter.checkSync({ ...user("u"), cost: 21 })).toMatchObject({
      allowed: false,
      reason: "never_fits",
      retryAfterMs: undefined,
      remaining: 20,
    });
  });
});

describe("an invalid request", () => {
  it("is refused with every field named, also from plain JavaScript", () => {
    const { limiter } = open(one("1/h"));
    const ask = (request: unknown): unknown => limiter.checkSync(request as CheckRequest);
    for (const none of [undefined, null, "u1", 7, []])
      expect(() => ask(none)).toThrow(/^the request must be an object/);
    expect(() =>
      ask({ dimensions: ["u1"], cost: 0.5, preview: 1, domain: 7, details: "yes", policies: "p", receipt: 0 }),
    ).toThrow(
      'domain must be a text, not 7; dimensions must be an object of texts, not ["u1"]; ' +
        "cost must be a whole number from 1 to 100000, not 0.5; preview must be true or false, not 1; " +
        'policies must be a list of 1 to 32 policy ids, not "p"; details must be true or false, not "yes"; ' +
        "receipt must be true or false, not 0",
    );
    expect(() => ask({ dimensions: null })).toThrow("dimensions must be an object of texts, not null");
  });

  it("is refused by charge, reset and explain as well", async () => {
    const { limiter } = open(one("1/h"));
    const wrong = { cost: 0.5 };
    for (const answer of [limiter.charge(wrong), limiter.reset(wrong), limiter.explain(wrong), limiter.check(wrong)]) {
      await expect(answer).rejects.toMatchObject({ code: "invalid_request" });
    }
  });
});

describe("idempotency", () => {
  const hour = one("5/h");

  it("charges an id once and answers as before, also when two arrive at once", async () => {
    const { limiter } = open(hour);
    const ask = { ...user("u"), id: "r1", cost: 2 };
    const [first, second] = await Promise.all([limiter.check(ask), limiter.check(ask)]);
    expect([first.replayed, second.replayed]).toEqual([false, true]);
    expect(second.remaining).toBe(3);
    expect(limiter.checkSync({ ...user("u"), preview: true }).remaining).toBe(3);
  });

  it("decides a denied id afresh", () => {
    const { limiter, clock } = open(one("1/s"));
    limiter.checkSync(user("u"));
    expect(limiter.checkSync({ ...user("u"), id: "r1" })).toMatchObject({ allowed: false });
    clock.advance(1000);
    expect(limiter.checkSync({ ...user("u"), id: "r1" })).toMatchObject({ allowed: true, replayed: false });
  });

  it("binds an id to policies, subject and cost", () => {
    const { limiter } = open(hour);
    limiter.checkSync({ ...user("u"), id: "r1" });
    for (const other of [
      { ...user("v"), id: "r1" },
      { ...user("u"), id: "r1", cost: 2 },
    ]) {
      expect(() => limiter.checkSync(other)).toThrow(expect.objectContaining({ code: "idempotency_conflict" }));
    }
  });

  it.each(["", "x".repeat(257), 7])("refuses the id %j", (id) => {
    const { limiter } = open(hour);
    expect(() => limiter.checkSync({ ...user("u"), id: id as string })).toThrow(
      "id must be a text of 1 to 256 characters",
    );
  });

  it("remembers an id for as long as the request says, else ten minutes", () => {
    const { limiter, clock } = open(hour);
    limiter.checkSync({ ...user("u"), id: "short", idTtlMs: 1000 });
    limiter.checkSync({ ...user("u"), id: "long" });
    clock.advance(1000);
    expect(limiter.checkSync({ ...user("u"), id: "short", idTtlMs: 1000 }).replayed).toBe(false);
    clock.advance(598_999);
    expect(limiter.checkSync({ ...user("u"), id: "long" }).replayed).toBe(true);
    clock.advance(1);
    expect(limiter.checkSync({ ...user("u"), id: "long" }).replayed).toBe(false);
    expect(() => limiter.checkSync({ ...user("u"), id: "x", idTtlMs: 0 })).toThrow(
      "idTtlMs must be a number from 1 to 86400000, not 0",
    );
  });

  it("forgets an id whose take was given back", async () => {
    const { limiter } = open(hour);
    const ask = { ...user("u"), id: "r1", cost: 2, receipt: true };
    const { receipt } = limiter.checkSync(ask);
    expect(await limiter.give(receipt!)).toBe(true);
    expect(limiter.checkSync(ask)).toMatchObject({ replayed: false, remaining: 3 });
  });

  it("does not mind in which order policies are written", () => {
    const policies = ["a", "b"].map((id) => ({ id, limits: [{ by: "user", windows: "5/h" }] }));
    const { limiter } = open({ policies });
    limiter.checkSync({ ...user("u"), id: "r1" });
    limiter.usePolicies({ policies: policies.toReversed() });
    expect(limiter.checkSync({ ...user("u"), id: "r1" }).replayed).toBe(true);
  });

  it("charges an id once, whatever else happens", () => {
    const step = fc.record({
      id: fc.constantFrom("a", "b", "c", undefined),
      user: fc.constantFrom("u", "v"),
      cost: fc.integer({ min: 1, max: 3 }),
      afterMs: fc.nat(2000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { limiter, clock } = open(one("100 once"));
        const used: Record<string, number> = { u: 0, v: 0 };
        const seen = new Map<string, string>();
        for (const { id, user: name, cost, afterMs } of steps) {
          clock.advance(afterMs);
          const asked = `${name} ${cost}`;
          const known = id === undefined ? undefined : seen.get(id);
          if (known !== undefined && known !== asked) {
            expect(() => limiter.checkSync({ ...user(name), cost, id })).toThrow(
              expect.objectContaining({ code: "idempotency_conflict" }),
            );
            continue;
          }
          const decision = limiter.checkSync({ ...user(name), cost, id });
          expect(decision.replayed).toBe(known !== undefined);
          if (known === undefined && decision.allowed) used[name]! += cost;
          if (id !== undefined && decision.allowed) seen.set(id, asked);
        }
        for (const name of ["u", "v"])
          expect(limiter.checkSync({ ...user(name), preview: true }).used).toBe(used[name]);
      }),
    );
  });

  it("remembers a bounded number of ids", () => {
    const clock = new ManualClock(start);
    const counters = new MemoryCounters({ clock, maxIds: 100 });
    const limiter = createLimiter({ policies: one("100k/h"), clock, counters });
    for (let i = 0; i < 1000; i++) limiter.checkSync({ ...user("u"), id: `r${i}` });
    expect(counters.stats.ids).toBe(100);
    expect(limiter.checkSync({ ...user("u"), id: "r999" }).replayed).toBe(true);
  });
});

describe("previews", () => {
  it("of cost 0 say no on an empty counter, and yes only if something would pass", () => {
    const { limiter } = open(one("1/h"));
    const ask = { ...user("u"), preview: true, cost: 0 };
    expect(limiter.checkSync(ask)).toMatchObject({ allowed: true, remaining: 1, preview: true });
    limiter.checkSync(user("u"));
    expect(limiter.checkSync(ask)).toMatchObject({ allowed: false, retryAfterMs: 3_600_000 });
  });

  it("may come from a cache of at most 50 ms, which new policies empty", () => {
    const clock = new ManualClock(start);
    const counters = new MemoryCounters({ clock });
    const limiter = createLimiter({ policies: one("9/h"), clock, counters, previewCacheMs: 50 });
    const preview = (): number | undefined => limiter.checkSync({ ...user("u"), preview: true }).remaining;
    expect(preview()).toBe(9);
    limiter.checkSync(user("u"));
    clock.advance(49);
    expect(preview()).toBe(9);
    clock.advance(1);
    expect(preview()).toBe(8);
    limiter.usePolicies(one("5/h"));
    expect(preview()).toBe(4);
    limiter.checkSync(user("u"));
    clock.advance(-1_800_000);
    expect(preview()).toBe(3);
  });

  it("are cached by tier too", () => {
    const clock = new ManualClock(start);
    const policies = one("10/h", { tiers: { premium: { windows: "100/h" } } });
    const limiter = createLimiter({ policies, clock, counters: new MemoryCounters({ clock }), previewCacheMs: 50 });
    expect(limiter.checkSync({ ...user("u"), preview: true }).limit).toBe(10);
    expect(limiter.checkSync({ ...user("u", { tier: "premium" }), preview: true }).limit).toBe(100);
  });
});

describe("give, charge and reset", () => {
  it("give back by receipt, charge after the fact, reset by request", async () => {
    const { limiter } = open(one("10/h"));
    const { receipt } = limiter.checkSync({ ...user("u"), cost: 4, receipt: true });
    expect(await limiter.give(receipt!)).toBe(true);
    expect(await limiter.give(receipt!)).toBe(false);
    expect(await limiter.give("made up")).toBe(false);
    await limiter.charge({ ...user("u"), cost: 7 });
    expect(limiter.checkSync({ ...user("u"), preview: true }).remaining).toBe(3);
    await limiter.reset(user("u"));
    expect(limiter.checkSync({ ...user("u"), preview: true }).remaining).toBe(10);
  });

  it("a reset of one subject leaves the receipts of others", async () => {
    const { limiter } = open(one("10/h"));
    const { receipt } = limiter.checkSync({ ...user("b"), cost: 4, receipt: true });
    await limiter.reset(user("a"));
    expect(await limiter.give(receipt!)).toBe(true);
    expect(limiter.checkSync({ ...user("b"), preview: true }).remaining).toBe(10);
  });

  it("several receipts are given back in any order, and under a changed limit", async () => {
    const { limiter } = open(one("10/h"));
    const [first, second] = [4, 4].map((cost) => limiter.checkSync({ ...user("u"), cost, receipt: true }).receipt!);
    expect([await limiter.give(first!), await limiter.give(second!)]).toEqual([true, true]);
    expect(limiter.checkSync({ ...user("u"), preview: true }).remaining).toBe(10);
    const { receipt } = limiter.checkSync({ ...user("u"), receipt: true });
    limiter.usePolicies(one("10/h burst 100"));
    limiter.checkSync({ ...user("u"), cost: 90 });
    expect(await limiter.give(receipt!)).toBe(true);
    expect(limiter.checkSync({ ...user("u"), preview: true }).remaining).toBe(10);
  });

  it("gives no receipt for a denial, nor unasked", () => {
    const { limiter } = open(one("1/h"));
    expect(limiter.checkSync(user("u")).receipt).toBeUndefined();
    expect(limiter.checkSync({ ...user("u"), receipt: true }).receipt).toBeUndefined();
  });
});

describe("new policies", () => {
  it("keep the counters of an edited limit, and start those afresh that say so", () => {
    const { limiter } = open({
      policies: [
        {
          id: "p",
          limits: [
            { name: "kept", by: "user", windows: "10/h" },
            { name: "fresh", by: "user", windows: "10/h", on_change: "reset" },
          ],
        },
      ],
    });
    limiter.checkSync({ ...user("u"), cost: 10 });
    expect(limiter.snapshot.generation).toBe(1);
    limiter.usePolicies({
      policies: [
        {
          id: "p",
          version: 2,
          limits: [
            { name: "fresh", by: "user", windows: "20/h", on_change: "reset" },
            { name: "kept", by: "user", windows: "20/h" },
          ],
        },
      ],
    });
    expect(limiter.snapshot.generation).toBe(2);
    const { limits } = limiter.checkSync({ ...user("u"), details: true });
    expect(limits).toMatchObject([
      { scope: "fresh", remaining: 20 },
      { scope: "kept", remaining: 0, retryAfterMs: 180_000 },
    ]);
  });

  it("start a limit afresh if only its tiers were edited and it says so", () => {
    const tiered = (windows: string): Record<string, unknown> =>
      one("10/h", { on_change: "reset", tiers: { t: { windows } } });
    const { limiter } = open(tiered("50/h"));
    limiter.checkSync({ ...user("u", { tier: "t" }), cost: 50 });
    limiter.usePolicies(tiered("100/h"));
    expect(limiter.checkSync(user("u", { tier: "t" })).remaining).toBe(99);
  });

  it("that are wrong change nothing", () => {
    const { limiter } = open(one("10/h"));
    expect(() => limiter.usePolicies({ polices: [] })).toThrow(/did you mean/i);
    expect(limiter.snapshot.generation).toBe(1);
  });
});

describe("remote counters", () => {
  /** A store that answers a turn later, over one in memory. */
  function remote(clock: ManualClock): CounterStore & { peeks: number } {
    const memory = new MemoryCounters({ clock });
    return {
      local: false,
      peeks: 0,
      take: async (limits, options) => memory.take(limits, options),
      async peek(limits) {
        this.peeks += 1;
        return memory.peek(limits);
      },
      give: async (receipt) => memory.give(receipt),
      charge: async (limits) => memory.charge(limits),
      block: async (limits, forMs) => memory.block(limits, forMs),
      reset: async (limits) => memory.reset(limits),
      read: async (limit) => memory.read(limit),
      close: async () => memory.close(),
    };
  }

  it("are asked by check, and refused by checkSync", async () => {
    const clock = new ManualClock(start);
    const counters = remote(clock);
    const limiter = createLimiter({ policies: one("2/h"), clock, counters });
    expect((await limiter.check(user("u"))).remaining).toBe(1);
    expect(() => limiter.checkSync(user("u"))).toThrow(expect.objectContaining({ code: "not_local" }));
    const preview = { ...user("u"), preview: true };
    await limiter.check(preview);
    await limiter.check(preview);
    expect(counters.peeks).toBe(1);
    clock.advance(50);
    await limiter.check(preview);
    expect(counters.peeks).toBe(2);
    await limiter.close();
  });
});

describe("counters that fail", () => {
  const failing = (error: unknown): CounterStore => failingCounters(() => error);
  const policies = (onFailure: string): Record<string, unknown> => ({
    policies: [{ id: "p", on_failure: onFailure, limits: [{ by: "user", windows: "10/h" }] }],
  });

  it("are answered as the policy says, and never thrown into the app nor dressed up as a denial by a limit", async () => {
    const clock = new ManualClock(start);
    const ask = (onFailure: string): Promise<unknown> =>
      createLimiter({ policies: policies(onFailure), clock, counters: failing(new Error("connection refused")) }).check(
        user("u"),
      );
    const uncounted = {
      reason: "degraded",
      degraded: "storage_unavailable",
      limit: 10,
      remaining: undefined,
      used: undefined,
      resetAtMs: undefined,
    };
    expect(await ask("open")).toMatchObject({ ...uncounted, allowed: true, retryAfterMs: undefined });
    expect(await ask("closed")).toMatchObject({ ...uncounted, allowed: false, retryAfterMs: 1_000 });
  });

  it("leave the caller's mistakes as errors", async () => {
    const conflict = new SluiceError("idempotency_conflict", "used before");
    const limiter = createLimiter({ policies: policies("open"), counters: failing(conflict) });
    await expect(limiter.check(user("u"))).rejects.toBe(conflict);
  });
});

describe("previews of remote counters", () => {
  it("that were asked under old policies are not remembered under new ones", async () => {
    const clock = new ManualClock(start);
    const memory = new MemoryCounters({ clock });
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let holding = true;
    const counters: CounterStore = {
      local: false,
      take: async (limits, options) => memory.take(limits, options),
      async peek(limits) {
        const answer = memory.peek(limits);
        if (holding) await held;
        return answer;
      },
      give: async (receipt) => memory.give(receipt),
      charge: async (limits) => memory.charge(limits),
      block: async (limits, forMs) => memory.block(limits, forMs),
      reset: async (limits) => memory.reset(limits),
      read: async (limit) => memory.read(limit),
      close: async () => memory.close(),
    };
    const limiter = createLimiter({ policies: one("9/h"), clock, counters });
    const early = limiter.check({ ...user("u"), preview: true });
    limiter.usePolicies(one("5/h"));
    holding = false;
    release();
    expect((await early).limit).toBe(9);
    expect((await limiter.check({ ...user("u"), preview: true })).limit).toBe(5);
  });
});

describe("a dimension that requests lack", () => {
  const policies = [
    { id: "typo", limits: [{ by: ["tennant"], windows: "2/h" }] },
    { id: "both", limits: [{ by: ["tenant", "usr"], windows: ["5/h", "9/d"] }] },
    { id: "strict", match: { kind: "strict" }, limits: [{ by: ["user"], windows: "5/h", missing: "deny" }] },
  ];

  it("is named by explain, with what that means", async () => {
    const { limiter } = open({ policies });
    const explanation = await limiter.explain({ dimensions: { tenant: "t" } });
    expect(explanation.limits.map(({ missing }) => missing)).toEqual([["tennant"], ["usr"]]);
    const text = renderExplanation(explanation);
    expect(text).toContain(
      "  subject none in the request\n  missing tennant: one counter is shared by all requests without it\n",
    );
    const { limiter: shared } = open({ policies: [{ id: "all", limits: [{ windows: "2/h" }] }] });
    expect(renderExplanation(await shared.explain({ dimensions: {} }))).toContain(
      "  subject none: one counter is shared by all callers\n",
    );
    const denied = await limiter.explain({ dimensions: { tenant: "t", kind: "strict" } });
    expect(renderExplanation(denied)).toContain("user needs user that the request lacks");
    const whole = await limiter.explain({ dimensions: { tennant: "t", tenant: "t", usr: "u" } });
    expect(whole.limits.flatMap(({ missing }) => missing)).toEqual([]);
  });

  it("is reported with every check of it, and with no preview", async () => {
    const heard: string[] = [];
    const onMissing = (policy: Policy, dimension: string): number => heard.push(`${policy.id}:${dimension}`);
    const only = createLimiter({ policies: { policies: policies.slice(0, 1), default: "none" }, onMissing });
    only.checkSync({ dimensions: { tenant: "t" } });
    only.checkSync({ dimensions: { tennant: "t" } });
    expect(heard.splice(0)).toEqual(["typo:tennant"]);
    const all = createLimiter({ policies: { policies, default: "none" }, onMissing });
    all.checkSync({ dimensions: { tenant: "t" } });
    await all.checkTogether([{ dimensions: { tenant: "t" } }]);
    expect(heard.splice(0)).toEqual(["typo:tennant", "both:usr", "typo:tennant", "both:usr"]);
    all.checkSync({ dimensions: { tenant: "t", tennant: "t", usr: "u", kind: "strict" } });
    expect(heard.splice(0)).toEqual(["strict:user"]);
    all.checkSync({ preview: true });
    await all.explain({});
    await all.charge({});
    all.checkSync({
      limits: [{ name: "own", by: ["tenant"], window: { limit: 1, per: { kind: "never" }, burst: 1 } }],
    });
    expect(heard).toEqual([]);
  });
});

describe("explain", () => {
  const oneEach = { policies: [{ id: "api", limits: [{ by: "user", windows: "1/s" }] }] };

  it("shows the windows at the moment of the decision, whatever is taken right after it", async () => {
    class BusyCounters extends MemoryCounters {
      override peek(limits: Parameters<MemoryCounters["peek"]>[0], options?: PeekOptions) {
        const answer = super.peek(limits, options);
        super.take(limits);
        return answer;
      }
    }
    const clock = new ManualClock();
    const limiter = createLimiter({ policies: oneEach, clock, counters: new BusyCounters({ clock }) });
    const [first, second] = [await limiter.explain(user("u")), await limiter.explain(user("u"))];
    expect(first.decision.allowed).toBe(true);
    expect(first.limits[0]!.windows[0]).toMatchObject({
      remaining: 1,
      arithmetic: [expect.anything(), expect.stringMatching(/fits$/)],
    });
    expect(second.decision.allowed).toBe(false);
    expect(second.limits[0]!.windows[0]).toMatchObject({ remaining: 0 });
    await limiter.close();
  });

  it("says that a lease of this node decides, if the windows at the central store would not", async () => {
    class HeldCounters extends MemoryCounters {
      readonly leases = true;
      override peek(limits: Parameters<MemoryCounters["peek"]>[0], options?: PeekOptions) {
        const answer = super.peek(limits, options);
        if (options?.record === true) return answer;
        return { ...answer, outcomes: answer.outcomes.map((outcome) => ({ ...outcome, fits: "now" as const })) };
      }
    }
    const clock = new ManualClock();
    const policies = { policies: [{ id: "api", limits: [{ by: "user", windows: "1000/s burst 1" }] }] };
    const counters = new HeldCounters({ clock });
    const limiter = createLimiter({ policies, clock, counters });
    expect((await limiter.explain(user("u"))).limits[0]!.counted).toMatch(/\)$/);
    await limiter.charge(user("u"));
    const explanation = await limiter.explain(user("u"));
    expect(explanation.decision.allowed).toBe(true);
    expect(explanation.limits[0]).toMatchObject({
      counted: expect.stringContaining("; a lease of this node decides now, and not these windows"),
      windows: [{ remaining: 0 }],
    });
    await limiter.close();
  });

  it("says for each limit how it is counted, by the counters in use", async () => {
    const policies = {
      policies: [
        { id: "api", limits: [{ by: "user", windows: "1000/s" }] },
        { id: "pay", limits: [{ by: "user", windows: "1000/s" }], counters: "exact" },
      ],
    };
    const clock = new ManualClock();
    const counters = new LeasedCounters(new MemoryCounters({ clock }), { clock });
    const limiter = createLimiter({ policies, clock, counters });
    const explanation = await limiter.explain(user("u"));
    expect(explanation.limits.map(({ allowance }) => allowance)).toEqual([10, 0]);
    const text = renderExplanation(explanation);
    expect(text).toContain("  counted by leases while hot, at most 10 over 1000/s (max_overshoot 1%)\n");
    expect(text).toContain("  counted exactly, at the counters, because it is of a policy with counters: exact\n");
    await limiter.close();
  });

  it("reports a block, a list that exempts and a limit that is skipped", async () => {
    const { limiter } = open({
      policies: [
        { id: "login", limits: [{ by: "user", windows: "1/s", block_for: "10m" }] },
        { id: "lists", allow: { user: "u" }, limits: [{ by: "user", windows: "1/s" }] },
        { id: "skips", limits: [{ by: "tenant", windows: "9/s", missing: "skip" }] },
      ],
    });
    limiter.checkSync(user("u"));
    limiter.checkSync(user("u"));
    const text = renderExplanation(await limiter.explain(user("u")));
    expect(text).toContain("  blocked for another 600000 ms\n");
    expect(text).toContain("✓ lists: matches everything in its domain; its allow list names this request\n");
    expect(text).toContain("✓ skips: matches everything in its domain; tenant is skipped: the request lacks tenant\n");
    expect(text).toMatch(/DENIED by login \/ user: blocked; passes in 600000 ms$/);
  });

  it("says which policies matched, which counters, the arithmetic, and why it was denied", async () => {
    const { limiter } = open({
      policies: [
        {
          id: "api",
          match: { endpoint: "/v1/**", method: "GET" },
          limits: [{ by: ["tenant"], windows: ["2/s burst 4", "100/m"] }],
        },
        { id: "post", match: { endpoint: "/v1/**", method: "POST" }, limits: [{ by: ["tenant"], windows: "1/s" }] },
        { id: "acme", match: { tenant: "zeta" }, limits: [{ by: ["tenant"], windows: "1/s" }] },
      ],
    });
    const ask = { dimensions: { tenant: "acme", endpoint: "/v1//orders", method: "GET" }, cost: 3 };
    limiter.checkSync(ask);
    const explanation = await limiter.explain(ask);
    expect(explanation.decision).toMatchObject({ allowed: false, preview: true, retryAfterMs: 1000 });
    expect(renderExplanation(explanation)).toBe(`domain    default
endpoint  /v1/orders

policies
  ✓ api: matches endpoint /v1/**, method GET
  · post: wants method POST, not GET
  · acme: wants tenant zeta, not acme

limit api / tenant (cost 3)
  subject acme
  counter api|tenant:gcra|acme
  counted exactly, in memory
  window 2/s burst 4: 1 of 4 left, as good as new in 1500 ms
    each unit of cost is worth 500 ms; the counter may run 2000 ms ahead
    ahead 1500 ms + cost 3 worth 1500 ms = 3000 ms: is 1000 ms too early
  window 100/m: 97 of 100 left, as good as new in 1800 ms
    each unit of cost is worth 600 ms; the counter may run 60000 ms ahead
    ahead 1800 ms + cost 3 worth 1800 ms = 3600 ms: fits

DENIED by api / tenant: 1 of 4 left, cost 3; passes in 1000 ms`);
    expect(limiter.checkSync({ ...ask, cost: 1 }).allowed).toBe(true);
  });
});
