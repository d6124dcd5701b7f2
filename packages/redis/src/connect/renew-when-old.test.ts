import { createFaultyProxy, flavors, startServer, type TestServer } from "@sluice/test-servers";
import { createLimiter } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RedisCounters } from "../redis-counters.ts";
import { connectNodeRedis } from "./node-redis-connection.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { renewWhenOld } from "./renew-when-old.ts";

const soon = { timeout: 30_000, interval: 10 };
const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(flavors)("connections to %s that get old", (flavor) => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startServer({ flavor });
  });
  afterEach(() => server.close());

  /** Ids of Sluice's connections, as the server knows them. */
  const ids = async (): Promise<string[]> => {
    const list = String(await server.command("CLIENT", "LIST"));
    return list.split("\n").flatMap((line) => (line.includes(" name=sluice ") ? [/^id=(\d+)/.exec(line)![1]!] : []));
  };

  it("are replaced while checks continue, and none of them fails", async () => {
    const counters = new RedisCounters({ servers: server.url, deadlineMs: 10_000, maxConnectionAgeMs: 100 });
    const policies = { policies: [{ id: "p", limits: [{ by: ["user"], windows: ["1000000/h"] }] }] };
    const limiter = createLimiter({ policies, counters });
    const dimensions = { user: "u" };
    const seen = new Set<string>();
    while (seen.size < 4) {
      const decisions = await Promise.all(Array.from({ length: 50 }, () => limiter.check({ dimensions })));
      for (const { allowed, degraded } of decisions) expect([allowed, degraded]).toEqual([true, undefined]);
      for (const id of await ids()) seen.add(id);
    }
    expect(counters.stats).toMatchObject({ timeouts: 0, failedCalls: 0 });
    expect(counters.stats.shards).toMatchObject([{ connected: true, breaker: "closed" }]);
    await limiter.close();
    await expect.poll(ids, soon).toEqual([]);
  }, 60_000);

  it("charge a fixed window exactly once for every check, however often they are replaced", async () => {
    const counters = new RedisCounters({ servers: server.url, deadlineMs: 10_000, maxConnectionAgeMs: 50 });
    const windows = [{ limit: 1_000_000, per: "never" }];
    const policies = { policies: [{ id: "p", limits: [{ by: ["user"], algorithm: "fixed_window", windows }] }] };
    const limiter = createLimiter({ policies, counters });
    const dimensions = { user: "u" };
    const seen = new Set<string>();
    let checks = 0;
    while (seen.size < 4) {
      await Promise.all(Array.from({ length: 20 }, () => limiter.check({ dimensions })));
      checks += 20;
      for (const id of await ids()) seen.add(id);
    }
    expect((await limiter.peek({ dimensions })).used).toBe(checks);
    await limiter.close();
  }, 60_000);

  it("answer their pending commands before they are closed", async () => {
    const connect = renewWhenOld(connectNodeRedis(), 300, 5_000);
    let readies = 0;
    const connection: RedisConnection = connect(
      { kind: "tcp", host: server.host, port: server.port },
      { onReady: () => (readies += 1), onLost: (error) => expect.unreachable(error.message) },
    );
    await expect.poll(() => readies, soon).toBe(1);
    // Longer than the connection lives.
    const slow = connection.send(["BLPOP", "nothing", "1"]);
    await expect.poll(() => readies, soon).toBeGreaterThanOrEqual(2);
    expect(await connection.send(["PING"])).toBe("PONG");
    expect(await slow).toBeNull();
    connection.close();
    await expect.poll(ids, soon).toEqual([]);
  }, 60_000);

  it("stay if no other can be opened", async () => {
    const proxy = await createFaultyProxy(server);
    const connect = renewWhenOld(connectNodeRedis(), 100, 200);
    let readies = 0;
    const connection = connect(
      { kind: "tcp", host: "127.0.0.1", port: proxy.port },
      { onReady: () => (readies += 1), onLost: () => undefined },
    );
    await expect.poll(() => readies, soon).toBeGreaterThanOrEqual(2);
    await server.command("CONFIG", "SET", "maxclients", "1");
    await pause(600);
    expect(await connection.send(["PING"])).toBe("PONG");
    await server.command("CONFIG", "SET", "maxclients", "1000");
    const before = readies;
    await expect.poll(() => readies, soon).toBeGreaterThan(before);
    connection.close();
    await proxy.close();
  }, 60_000);
});
