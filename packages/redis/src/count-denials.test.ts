import { flavors, startServer, type TestServer } from "@sluice/test-servers";
import { createLimiter, LeasedCounters, type Limiter, MemoryCounters } from "sluice";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisCounters } from "./redis-counters.ts";

const policies = {
  policies: [
    { id: "shared", domain: "shared", limits: [{ by: ["user"], windows: ["3/h"] }], count_denials: true },
    {
      id: "blocking",
      domain: "blocking",
      limits: [{ by: ["user"], windows: ["1/s"], block_for: "1h" }],
      count_denials: true,
    },
    { id: "own", domain: "own", limits: [{ by: ["user"], windows: ["3/h"] }] },
  ],
};
const deadlineMs = 5_000;
let names = 0;
const newUser = (): string => `u${++names}`;

const denied = async (limiter: Limiter, domain: string, user: string, cost = 1): Promise<number> =>
  (await limiter.check({ domain, dimensions: { user }, cost })).denyCount;

describe.each(flavors)("count_denials on %s", (flavor) => {
  let server: TestServer;
  let nodes: RedisCounters[];
  let one: Limiter;
  let two: Limiter;
  beforeAll(async () => {
    server = await startServer({ flavor });
    nodes = [1, 2].map(() => new RedisCounters({ servers: server.url, deadlineMs }));
    [one, two] = nodes.map((counters) => createLimiter({ policies, counters })) as [Limiter, Limiter];
  });
  afterAll(async () => {
    await Promise.all([one, two].map((limiter) => limiter.close()));
    await server.close();
  });

  it("counts what all nodes denied in a row, and starts over on every node with an allowance on one", async () => {
    const user = newUser();
    expect(await denied(one, "shared", user, 2)).toBe(0);
    expect([await denied(one, "shared", user, 2), await denied(two, "shared", user, 3)]).toEqual([2, 5]);
    expect((await two.peek({ domain: "shared", dimensions: { user }, cost: 2 })).denyCount).toBe(7);
    expect(await denied(one, "shared", user, 2)).toBe(7);
    expect(await denied(two, "shared", user)).toBe(0);
    expect(await denied(one, "shared", user)).toBe(1);
    await two.reset({ domain: "shared", dimensions: { user } });
    expect(await denied(two, "shared", user, 4)).toBe(4);
  });

  it("leaves other policies with what each node saw itself", async () => {
    const user = newUser();
    await denied(one, "own", user, 3);
    expect([await denied(one, "own", user), await denied(two, "own", user)]).toEqual([1, 1]);
  });

  it("costs no extra call, and its keys expire", async () => {
    const user = newUser();
    const calls = (): number => nodes[0]!.stats.calls;
    await denied(one, "shared", user, 3);
    const before = calls();
    for (let i = 1; i <= 5; i++) expect(await denied(one, "shared", user)).toBe(i);
    expect(calls() - before).toBe(5);
    const keys = ((await server.command("KEYS", `*:${user}`)) as string[]).toSorted();
    expect(keys).toHaveLength(2);
    for (const key of keys) expect(await server.command("PTTL", key)).toBeGreaterThan(3_600_000);
  });

  it("is remembered for as long as a block denies", async () => {
    const user = newUser();
    expect([await denied(one, "blocking", user), await denied(one, "blocking", user)]).toEqual([0, 1]);
    const keys = (await server.command("KEYS", `*:${user}`)) as string[];
    const lives = await Promise.all(keys.map((key) => server.command("PTTL", key)));
    // The block and the record; the counter itself is idle within a second.
    expect(lives.filter((ms) => Number(ms) > 3_500_000)).toHaveLength(2);
  });

  it("is exact even if other counters are leased: every denial reaches the servers", async () => {
    const centre = new RedisCounters({ servers: server.url, deadlineMs });
    const counters = new LeasedCounters(centre, { hotPerSecond: 0 });
    const leasing = createLimiter({ policies, counters });
    const user = newUser();
    await denied(leasing, "shared", user, 3);
    for (let i = 1; i <= 20; i++) expect(await denied(leasing, "shared", user)).toBe(i);
    expect(await denied(one, "shared", user)).toBe(21);
    expect(counters.stats.leases).toBe(0);
    await leasing.close();
  });
});

it("count_denials counts in memory too", async () => {
  const limiter = createLimiter({ policies, counters: new MemoryCounters() });
  const user = newUser();
  expect(await denied(limiter, "shared", user, 3)).toBe(0);
  expect([await denied(limiter, "shared", user, 2), await denied(limiter, "shared", user)]).toEqual([2, 3]);
});
