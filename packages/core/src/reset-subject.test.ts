import { describe, expect, it } from "vitest";
import { MemoryCounters } from "./counters/memory-counters.ts";
import { createLimiter } from "./create-limiter.ts";
import type { Limiter } from "./limiter.ts";

const policies = {
  policies: [
    { id: "login", match: { endpoint: "/login", method: "POST" }, limits: [{ by: ["ip"], windows: ["1/h"] }] },
    {
      id: "orders",
      match: { endpoint: "/v1/orders" },
      limits: [
        { name: "own", by: ["user"], windows: ["1/h"], tiers: { gold: { windows: ["1/d"] } } },
        { name: "shared", by: ["tenant", "user"], windows: ["1/h"], missing: "deny" },
        { name: "all", windows: ["1000/h"] },
      ],
    },
    { id: "elsewhere", match: { domain: "other" }, limits: [{ by: ["subject"], windows: ["1/h"] }] },
  ],
  default: "none",
};

const order = { user: "u1", tenant: "t1", endpoint: "/v1/orders" };

async function isAllowed(limiter: Limiter, dimensions: Readonly<Record<string, string>>): Promise<boolean> {
  return (await limiter.check({ dimensions })).allowed;
}

describe("resetting a subject", () => {
  it("resets limits of policies for an endpoint, which no endpoint has to be named for", async () => {
    const limiter = createLimiter({ policies });
    const login = { ip: "203.0.113.7", endpoint: "/login", method: "POST" };
    expect([await isAllowed(limiter, login), await isAllowed(limiter, login)]).toEqual([true, false]);
    expect(await limiter.resetSubject({ dimension: "ip", value: "203.0.113.7" })).toEqual({
      counters: [
        { policy: "login", scope: "ip", subject: "203.0.113.7" },
        { policy: "elsewhere", scope: "subject", subject: "ip:203.0.113.7" },
      ],
      skipped: [],
    });
    expect(await isAllowed(limiter, login)).toBe(true);
  });

  it("resets the default policy's counters in every domain that a policy names, and within a resource that is named", async () => {
    const limiter = createLimiter({
      policies: { ...policies, default: { limits: [{ by: ["user"], windows: ["1/h"] }] } },
    });
    const requests = [
      { dimensions: { user: "u1" } },
      { domain: "other", dimensions: { user: "u1" } },
      { dimensions: { user: "u1", resource: "search" } },
    ];
    const allowed = () =>
      Promise.all(requests.map(async (one) => (await limiter.check({ ...one, policies: ["default"] })).allowed));
    expect([await allowed(), await allowed()]).toEqual([
      [true, true, true],
      [false, false, false],
    ]);
    await limiter.resetSubject({ dimension: "user", value: "u1" });
    expect(await allowed()).toEqual([true, true, false]);
    await limiter.resetSubject({ dimension: "user", value: "u1", others: { resource: "search" } });
    expect((await allowed())[2]).toBe(true);
  });

  it("is not stopped by a neighbour that lacks a dimension, and says what it left out", async () => {
    const limiter = createLimiter({ policies });
    await isAllowed(limiter, order);
    const { counters, skipped } = await limiter.resetSubject({ dimension: "user", value: "u1", policy: "orders" });
    expect(counters).toEqual([{ policy: "orders", scope: "own", subject: "u1" }]);
    expect(skipped).toEqual([{ policy: "orders", scope: "shared", by: ["tenant", "user"] }]);
    const left = await limiter.check({ dimensions: order, details: true });
    expect(left).toMatchObject({ allowed: false, limits: [{ remaining: 1 }, { remaining: 0 }, {}] });
    await limiter.resetSubject({ dimension: "user", value: "u1", others: { tenant: "t1" } });
    expect(await isAllowed(limiter, order)).toBe(true);
  });

  it("resets what a tier counts over another length of time", async () => {
    const limiter = createLimiter({ policies });
    const gold = { ...order, tier: "gold" };
    await isAllowed(limiter, gold);
    await limiter.resetSubject({ dimension: "user", value: "u1", others: { tenant: "t1" } });
    expect(await isAllowed(limiter, gold)).toBe(true);
  });

  it.each([undefined, "silver"])(
    "resets limits for tiers alone, whose tier only requests name (%s is given)",
    async (tier) => {
      const tiers = { gold: { windows: ["1/h"] }, platinum: { windows: ["1/d"] } };
      const limiter = createLimiter({ policies: { policies: [{ id: "paid", limits: [{ by: ["user"], tiers }] }] } });
      const paid = ["gold", "platinum"].map((name) => ({ user: "u1", tier: name }));
      const allowed = () => Promise.all(paid.map((dimensions) => isAllowed(limiter, dimensions)));
      expect([await allowed(), await allowed()]).toEqual([
        [true, true],
        [false, false],
      ]);
      const others = tier === undefined ? {} : { tier };
      const { counters } = await limiter.resetSubject({ dimension: "user", value: "u1", others, policy: "paid" });
      expect(counters).toEqual([{ policy: "paid", scope: "user", subject: "u1" }]);
      expect(await allowed()).toEqual([true, true]);
    },
  );

  it("resets nothing if only a look is wanted, and leaves servers alone if only this process is meant", async () => {
    const limiter = createLimiter({ policies });
    await isAllowed(limiter, order);
    const { counters } = await limiter.resetSubject({ dimension: "user", value: "u1", reach: "nothing" });
    expect(counters).toHaveLength(2);
    expect(await limiter.reset({ dimensions: order }, { reach: "nothing" })).toHaveLength(3);
    expect(await isAllowed(limiter, order)).toBe(false);

    const inMemory = new MemoryCounters();
    // As counters on a server do, it holds nothing in this process.
    const remote = new Proxy(inMemory, {
      get(target, name) {
        if (name === "forget") return undefined;
        const value: unknown = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const away = createLimiter({ policies, counters: remote });
    await isAllowed(away, order);
    const everything = { dimension: "user", value: "u1", others: { tenant: "t1" } };
    await away.resetSubject({ ...everything, reach: "process" });
    expect(await isAllowed(away, order)).toBe(false);
    await createLimiter({ policies, counters: inMemory }).resetSubject({ ...everything, reach: "process" });
    expect(await isAllowed(away, order)).toBe(true);
  });

  it("says of a request that no limit counts that nothing was reset", async () => {
    const limiter = createLimiter({ policies });
    expect(await limiter.reset({ dimensions: { ip: "203.0.113.7" } })).toEqual([]);
    expect(await limiter.reset({ dimensions: { ip: "203.0.113.7", endpoint: "/login", method: "POST" } })).toEqual([
      { policy: "login", scope: "ip", subject: "203.0.113.7" },
    ]);
  });
});
