import { createClient, createCluster } from "@redis/client";
import { startServer, type TestServer } from "@sluice/test-servers";
import { Redis as Ioredis } from "ioredis";
import { Redis as Iovalkey } from "iovalkey";
import { createLimiter, limit, SluiceError } from "sluice";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisSource, redis } from "./redis.ts";

describe("redis()", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
  });
  afterAll(() => server.close());

  const clients = async (): Promise<number> => {
    const list = String(await server.command("CLIENT", "LIST", "TYPE", "normal"));
    // One of them is the test's own.
    return list.trim().split("\n").length - 1;
  };

  it("opens nothing until it is asked, and leaves nothing when it is closed", async () => {
    const before = await clients();
    const counters = redis(server.url, { prefix: "lazy", deadlineMs: 5000 });
    const limiter = createLimiter({ counters });
    expect(counters.ready).toBe(false);
    expect(counters.stats.shards).toEqual([]);
    expect(await clients()).toBe(before);
    expect((await limiter.check({ dimensions: { user: "ada" } })).degraded).toBeUndefined();
    expect(counters.ready).toBe(true);
    expect(await clients()).toBe(before + 1);
    await limiter.close();
    await expect.poll(clients).toBe(before);
  });

  it("can be closed before it was ever asked, and then answers that it is closed", async () => {
    const counters = redis(server.url);
    await counters.close();
    await expect(counters.take([])).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(counters.peek([])).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(counters.connected()).rejects.toMatchObject({ code: "store_unavailable" });
    expect(counters.ready).toBe(false);
  });

  it("counts like an app's own client, whichever it is, and leaves that alone", async () => {
    const nodeRedis = createClient({ url: server.url });
    const ioredis = new Ioredis(server.port, server.host, { lazyConnect: true });
    const iovalkey = new Iovalkey(server.port, server.host, { lazyConnect: true });
    const sources: RedisSource[] = [server.url, nodeRedis, ioredis, iovalkey];
    const remaining: unknown[] = [];
    for (const source of sources) {
      const counters = redis(source, { prefix: "same", deadlineMs: 5000 });
      remaining.push((await limit("10/d", { counters, name: "api" }).by("user").check("ada")).remaining);
      await counters.close();
    }
    expect(remaining).toEqual([9, 8, 7, 6]);
    expect(nodeRedis.isOpen).toBe(false);
    expect([ioredis.status, iovalkey.status]).toEqual(["wait", "wait"]);
  });

  it("says what it accepts when it is given something else", () => {
    const cluster = createCluster({ rootNodes: [{ url: server.url }] });
    for (const source of [cluster, {}, { host: "127.0.0.1" }])
      expect(() => redis(source as RedisSource)).toThrow(/source must be an address such as redis:/);
    expect(() => redis("http://127.0.0.1")).toThrow(/redis:/);
  });
});

describe("redis(), in plain JavaScript", () => {
  const unchecked = redis as unknown as (source?: unknown, options?: unknown) => unknown;
  const url = "redis://127.0.0.1:1";

  it.each([
    [undefined, {}, /^source must be an address such as redis:.*it is undefined, so see whether a setting is missing$/],
    [null, {}, /^source must be an address/],
    [6379, {}, /^source must be an address/],
    [{ host: "127.0.0.1", port: 6379 }, {}, /^source must be an address/],
    [url, { deadlineMS: 5 }, /^deadlineMS is not an option of redis; did you mean deadlineMs\?$/],
    [url, { keyPrefix: "a" }, /^keyPrefix is not .* did you mean prefix\?$/],
    [url, { password: "hunter2" }, /^password is not .* it belongs to the first argument/],
    [url, { onEvent: "log" }, /^onEvent must be a function/],
    [url, { cells: {} }, /^cells must be a list/],
    [url, { cells: [{ name: "a", servers: url, tenants: [] }] }, /^tenants is not an option of a cell/],
    [url, { breaker: { failures: 3 } }, /^failures is not an option of breaker/],
    [url, { breaker: { failureShare: 5 } }, /^failureShare must be a number from 0 to 1/],
    [url, "prefix", /^the options of redis must be an object/],
    [{ kind: "standalone", addresses: [] }, {}, /^addresses must be a list of addresses such as/],
    [{ kind: "single", addresses: [{ kind: "tcp", host: "a", port: 1 }] }, {}, /^kind must be one of standalone/],
  ])("refuses %j, %j", (source, options, message) => {
    expect(() => unchecked(source, options)).toThrow(message);
    expect(() => unchecked(source, options)).toThrow(SluiceError);
  });

  it("keeps a password out of its messages", () => {
    const servers = { kind: "standalone", addresses: [{ kind: "tcp", host: "a", port: 1 }], password: 271828 };
    expect(() => unchecked(servers)).toThrow(/^password must be a text$/);
    expect(() => unchecked(url, { password: "hunter2" })).not.toThrow(/hunter2/);
  });
});
