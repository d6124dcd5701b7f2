import { flavors, startServer, type TestServer } from "@sluice/test-servers";
import { type CheckRequest, createLimiter, LeasedCounters, type Limiter } from "sluice";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisCounters } from "./redis-counters.ts";

describe.each(flavors)("the default policy on %s", (flavor) => {
  let server: TestServer;
  const nodes: Limiter[] = [];

  beforeAll(async () => {
    server = await startServer({ flavor });
    for (const leased of [false, false, true]) {
      const redis = new RedisCounters({ servers: server.url, deadlineMs: 5000 });
      await redis.connected();
      nodes.push(createLimiter({ counters: leased ? new LeasedCounters(redis) : redis }));
    }
  });
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.close()));
    await server.close();
  });

  it.each<[string, CheckRequest, CheckRequest]>([
    ["domain", { domain: "one" }, { domain: "two" }],
    ["resource", { dimensions: { resource: "one" } }, { dimensions: { resource: "two" } }],
    ["API", { dimensions: { api: "/one" } }, { dimensions: { api: "/two" } }],
  ])("has one counter for every %s, the same on every node, with leases and without", async (what, one, two) => {
    const by = (request: CheckRequest, cost: number): CheckRequest => ({
      ...request,
      dimensions: { user: `by ${what}`, ...request.dimensions },
      cost,
    });
    const [first, second, third] = nodes as [Limiter, Limiter, Limiter];
    expect(await first.check(by(one, 900))).toMatchObject({ allowed: true });
    for (const node of [second, third]) expect(await node.check(by(one, 900))).toMatchObject({ allowed: false });
    for (const [i, node] of [third, second, first].entries())
      expect(await node.check({ ...by(two, 300), details: i === 1 })).toMatchObject({ allowed: true });
    for (const node of nodes) expect(await node.check(by(two, 300))).toMatchObject({ allowed: false });
  });
});
