import { createFaultyProxy, type FaultyProxy, startServer, type TestServer } from "@sluice/test-servers";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisCounters } from "./redis-counters.ts";
import type { RedisCountersOptions } from "./redis-counters-options.ts";
import type { ShardStatus } from "./site.ts";

const limit = compileTestLimit({ algorithm: "fixed_window", windows: [testWindow(1e6, 365 * 24 * 3_600_000)] });
const soon = { timeout: 30_000, interval: 20 };

describe("statistics of a server", () => {
  let server: TestServer;
  let proxy: FaultyProxy;
  let store: RedisCounters;
  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
  });
  beforeEach(async () => {
    proxy = await createFaultyProxy(server);
  });
  afterEach(async () => {
    await store.close();
    await proxy.close();
  });
  afterAll(() => server.close());

  async function open(options: Partial<RedisCountersOptions> = {}): Promise<RedisCounters> {
    store = new RedisCounters({ servers: proxy.url, ...options });
    await store.connected();
    return store;
  }

  const shard = (): ShardStatus => store.stats.shards[0]!;
  const take = (subject = "u") => store.take([resolvedLimit(limit, subject)]);
  /** Measures on each call: an earlier measurement shows nothing of what changed since. */
  const measured = (): number | undefined => {
    store.measure();
    return shard().roundTripMs;
  };
  const answered = (): number => shard().figures.durations.reduce((sum, one) => sum + one, 0);

  it("count every call once, by how long it took", async () => {
    await open({ deadlineMs: 5_000 });
    for (let i = 0; i < 3; i++) await take();
    await Promise.all(["a", "b", "c"].map(take));
    expect([shard().figures.calls, answered(), store.stats.questions]).toEqual([4, 4, 6]);
    expect(shard().figures.durationsSumMs).toBeGreaterThan(0);
    expect(store.stats).toMatchObject({ waiting: 0, inFlight: 0, moves: 0 });
  });

  it("distinguish timeouts, and count openings and closings of the breaker", async () => {
    await open({ deadlineMs: 20, breaker: { failuresInARow: 2, probeEveryMs: 50 } });
    proxy.blackhole();
    for (let i = 0; i < 2; i++) await take().catch(() => undefined);
    await expect.poll(() => shard().figures.breakerOpened, soon).toBe(1);
    expect(shard().figures.failures).toMatchObject({ connection: 0, access: 0, reply: 0 });
    // A process that got no core calls its timeouts starved.
    const { timeout, starved } = shard().figures.failures;
    expect(timeout + starved).toBeGreaterThan(0);
    proxy.heal();
    await expect.poll(() => shard().figures.breakerClosed, soon).toBe(1);
    expect(shard().figures.breakerOpened).toBe(1);
  });

  it("count what the server refused", async () => {
    await open({ deadlineMs: 5_000 });
    await take();
    await server.command("CONFIG", "SET", "maxmemory", "1");
    try {
      await expect(take("stranger")).rejects.toThrow();
      expect(shard().figures.failures).toMatchObject({ memory: 1, timeout: 0, connection: 0 });
    } finally {
      await server.command("CONFIG", "SET", "maxmemory", "0");
    }
  });

  it("show its latency, and how long it has been silent, even without other traffic", async () => {
    await open();
    await expect.poll(() => shard().roundTripMs, soon).toBeDefined();
    proxy.delayMs = 60;
    await expect.poll(measured, soon).toBeGreaterThanOrEqual(59);
    proxy.delayMs = 0;
    await expect.poll(measured, soon).toBeLessThan(59);
    proxy.blackhole();
    await expect.poll(measured, soon).toBeGreaterThan(100);
    expect(shard()).toMatchObject({ connected: true, breaker: "closed" });
  });
});
