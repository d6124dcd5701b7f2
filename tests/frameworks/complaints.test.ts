/** What users of other limiters report against them, each against our middleware, our stores, or both. */
import type { AddressInfo } from "node:net";
import { type Limits, rateLimit as limitExpress, type RateLimitOptions } from "@sluice/middleware/express";
import { SluiceStore as ExpressStore, rateLimit as expressRateLimit } from "@sluice/middleware/express-rate-limit";
import { SluiceStore as FastifyStore } from "@sluice/middleware/fastify-rate-limit";
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "@sluice/middleware/rate-limiter-flexible";
import { RedisCounters } from "@sluice/redis";
import { createFaultyProxy, type FaultyProxy, startServer, type TestServer } from "@sluice/test-servers";
import express, { type Request, type RequestHandler } from "express";
import { Redis } from "ioredis";
import { RateLimiterRedis as TheirRateLimiterRedis } from "rate-limiter-flexible";
import { type CounterStore, type Decision, ManualClock, MemoryCounters } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ask, readStatuses } from "./http-exchange.ts";

/** So long that no window ends during a test. */
const longMs = 20 * 24 * 60 * 60 * 1000;
const long = longMs / 1000;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function serve(...handlers: RequestHandler[]): Promise<string> {
  const app = express();
  app.set("env", "test");
  if (handlers.length > 0) app.use(...handlers);
  app.get("/", (_request, response) => void response.send("hello"));
  const server = app.listen(0, "127.0.0.1");
  closing.push(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const limited = (limits: Limits, options?: RateLimitOptions<Request>): Promise<string> =>
  serve(limitExpress(limits, options));

async function statuses(url: string, times: number): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i++) seen.push((await ask(url)).status);
  return seen;
}

/** One way to hit a key, as the three libraries hit their stores: true if it passed. */
interface Hitting {
  readonly name: string;
  hit(key: string): Promise<boolean>;
}

interface Shape {
  readonly counters: CounterStore;
  readonly prefix: string;
  readonly windowMs: number;
  readonly limit: number;
}

function hittingExpress({ counters, prefix, windowMs, limit }: Shape): Hitting {
  const store = new ExpressStore({ counters, prefix });
  expressRateLimit({ store, windowMs, limit });
  return { name: "express-rate-limit", hit: async (key) => (await store.increment(key)).totalHits <= limit };
}

function hittingFastify({ counters, prefix, windowMs, limit }: Shape): Hitting {
  const store = new FastifyStore({}, { counters, prefix });
  const hit = (key: string): Promise<boolean> =>
    new Promise((resolve, reject) =>
      store.incr(
        key,
        (error, result) => (error === null ? resolve(result!.current <= limit) : reject(error)),
        windowMs,
        limit,
      ),
    );
  return { name: "@fastify/rate-limit", hit };
}

function hittingFlexible({ counters, prefix, windowMs, limit }: Shape): Hitting {
  const limiter = new RateLimiterRedis({ counters, keyPrefix: prefix, points: limit, duration: windowMs / 1000 });
  const hit = (key: string): Promise<boolean> =>
    limiter.consume(key).then(
      () => true,
      (denied: unknown) => {
        if (denied instanceof RateLimiterRes) return false;
        throw denied;
      },
    );
  return { name: "rate-limiter-flexible", hit };
}

const makers = [hittingExpress, hittingFastify, hittingFlexible];

async function passed(hitting: Hitting, key: string, times: number): Promise<number> {
  let count = 0;
  for (let i = 0; i < times; i++) if (await hitting.hit(key)) count += 1;
  return count;
}

describe("complaints about addresses, none of which is true here", () => {
  const from = (address: string): { headers: Record<string, string> } => ({ headers: { "x-forwarded-for": address } });

  it("an IPv6 client rotates through the addresses of its /64", async () => {
    const url = await limited("2/d", { trustedProxies: ["127.0.0.1"] });
    const rotating = [1, 2, 3, 4].map((i) => ask(url, from(`2001:db8:0:7:${i}:${i}::${i}`)));
    expect((await readStatuses(rotating)).sort()).toEqual([200, 200, 429, 429]);
    expect((await ask(url, from("2001:db8:0:8::1"))).status).toBe(200);
  });

  it.each([
    ["IPv4-mapped", (last: number) => `::ffff:192.0.2.${last}`],
    ["NAT64", (last: number) => `64:ff9b::192.0.2.${last}`],
  ])("%s addresses collapse into one", async (_kind, address) => {
    const url = await limited("1/d", { trustedProxies: ["127.0.0.1"] });
    expect(await readStatuses([1, 2, 3].map((last) => ask(url, from(address(last)))))).toEqual([200, 200, 200]);
    // And each of them is the client that it is without IPv6 around it.
    expect(await readStatuses([1, 2, 3].map((last) => ask(url, from(`192.0.2.${last}`))))).toEqual([429, 429, 429]);
  });

  it("X-Forwarded-For is trusted from any client", async () => {
    const url = await limited("1/d");
    const lying = [1, 2, 3].map((i) => ask(url, from(`198.51.100.${i}`)));
    expect((await readStatuses(lying)).sort()).toEqual([200, 429, 429]);
    const behindOthers = await limited("1/d", { trustedProxies: ["10.0.0.0/8"] });
    const stillLying = [1, 2, 3].map((i) => ask(behindOthers, from(`198.51.100.${i}`)));
    expect((await readStatuses(stillLying)).sort()).toEqual([200, 429, 429]);
  });
});

describe("complaints about windows and memory, none of which is true here", () => {
  it("there is one timer for each key, until memory is gone", async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const counters = new MemoryCounters({ maxCounters: 1000 });
    const hitting = makers.map((make) => make({ counters, prefix: "many", windowMs: longMs, limit: 5 }));
    const before = timers();
    for (let i = 0; i < 3000; i++) for (const { hit } of hitting) await hit(`key ${i}`);
    // The test runner has a few itself.
    expect(timers()).toBeLessThan(before + 100);
    expect(counters.stats.counters).toBeLessThanOrEqual(1000);
  });

  it("windows of 0.5 s and 1.9 s are floored to whole seconds", async () => {
    for (const windowMs of [500, 1900]) {
      for (const make of makers) {
        const clock = new ManualClock();
        const hitting = make({ counters: new MemoryCounters({ clock }), prefix: "short", windowMs, limit: 1 });
        // To the beginning of a window.
        clock.advance(windowMs - (clock.epochMs() % windowMs));
        const passed: boolean[] = [];
        for (const afterMs of [0, windowMs - 1, 1, windowMs - 1, 1]) {
          clock.advance(afterMs);
          passed.push(await hitting.hit("a"));
        }
        expect([hitting.name, ...passed]).toEqual([hitting.name, true, false, true, false, true]);
      }
    }
  });

  it("each hit renews the end, and who goes on is locked out for ever", async () => {
    for (const make of makers) {
      const clock = new ManualClock();
      const hitting = make({ counters: new MemoryCounters({ clock }), prefix: "end", windowMs: 60_000, limit: 2 });
      let count = 0;
      // Six a minute for ten minutes, begun somewhere within a minute.
      for (let i = 0; i < 60; i++) {
        if (await hitting.hit("a")) count += 1;
        clock.advance(10_000);
      }
      expect([hitting.name, count]).toEqual([hitting.name, 22]);
    }
  });
});

describe("complaints about Redis, none of which is true here", () => {
  let server: TestServer;
  let client: Redis;
  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
    client = new Redis(server.url);
  });
  afterAll(async () => {
    client.disconnect();
    await server.close();
  });

  async function open(servers: string = server.url, deadlineMs = 5000): Promise<RedisCounters> {
    const counters = new RedisCounters({ servers, deadlineMs });
    closing.push(() => counters.close());
    await counters.connected();
    return counters;
  }

  async function proxied(): Promise<FaultyProxy> {
    const proxy = await createFaultyProxy({ host: "127.0.0.1", port: Number(new URL(server.url).port) });
    closing.push(() => proxy.close());
    return proxy;
  }

  it("scripts are lost after a failover, or a SCRIPT FLUSH", async () => {
    const counters = await open();
    const url = await limited("4/d", { name: "flushed", counters });
    const hitting = makers.map((make) => make({ counters, prefix: "flushed", windowMs: longMs, limit: 4 }));
    const seen: number[] = [];
    for (let i = 0; i < 6; i++) {
      await client.script("FLUSH");
      seen.push((await ask(url)).status);
    }
    expect(seen).toEqual([200, 200, 200, 200, 429, 429]);
    for (const { name, hit } of hitting) {
      const passed: boolean[] = [];
      for (let i = 0; i < 6; i++) {
        await client.script("FLUSH");
        passed.push(await hit("a"));
      }
      expect([name, ...passed]).toEqual([name, true, true, true, true, false, false]);
    }
  });

  it("keys without an end block for ever", async () => {
    const counters = await open();
    for (const make of makers) {
      const { hit } = make({ counters, prefix: "ending", windowMs: 60_000, limit: 1 });
      for (let i = 0; i < 3; i++) await hit("ending");
    }
    const url = await limited("1/m", { name: "ending", counters, ip: () => "192.0.2.77", blockFor: "5m" });
    await statuses(url, 3);
    const keys = await client.keys("*");
    expect(keys.length).toBeGreaterThanOrEqual(5);
    for (const key of keys) expect([key, (await client.pttl(key)) > 0]).toEqual([key, true]);
  });

  it("the end is renewed by every hit, or by every denied one", async () => {
    const counters = await open();
    for (const make of makers) {
      const hitting = make({ counters, prefix: "renewed", windowMs: longMs, limit: 3 });
      const key = `renewed ${hitting.name}`;
      await hitting.hit(key);
      const [name] = await client.keys(`*${key}`);
      const endsMs = await client.pexpiretime(name!);
      expect(await passed(hitting, key, 10)).toBe(2);
      expect(await client.pexpiretime(name!)).toBe(endsMs);
    }
    const url = await limited("1/d", { name: "renewed", counters, ip: () => "192.0.2.78" });
    await ask(url);
    const [name] = await client.keys("*192.0.2.78");
    const endsMs = await client.pexpiretime(name!);
    expect(await statuses(url, 10)).toEqual(Array(10).fill(429));
    expect(await client.pexpiretime(name!)).toBe(endsMs);
  });

  it("windows of 0.5 s and 1.9 s are floored to whole seconds there too", async () => {
    const counters = await open();
    for (const windowMs of [500, 1900]) {
      const decisions: Decision[] = [];
      const limits = [{ by: ["ip"], algorithm: "fixed_window", windows: [{ limit: 1, per: `${windowMs}ms` }] }];
      const policies = { policies: [{ id: `short-${windowMs}`, limits, on_failure: "open" }] };
      const url = await limited({ counters, policies }, { onDecision: (decision) => decisions.push(decision) });
      for (let i = 0; i < 3; i++) await ask(url);
      for (const { resetAtMs = 0, resetAfterMs = 0 } of decisions) {
        expect(resetAfterMs).toBeLessThanOrEqual(windowMs);
        // Windows end at multiples of their length, by the server's clock, and are reported in whole milliseconds.
        expect([0, 1]).toContain(resetAtMs % windowMs);
      }
    }
  });

  it("denied requests are charged", async () => {
    const counters = await open();
    // rate-limiter-flexible counts refused requests, and apps rely on that count.
    for (const make of [hittingExpress, hittingFastify]) {
      const shape = { counters, prefix: "denied", windowMs: longMs };
      const strict = make({ ...shape, limit: 2 });
      expect(await passed(strict, strict.name, 20)).toBe(2);
      // With a higher limit the same counter has exactly as much more.
      expect(await passed(make({ ...shape, limit: 5 }), strict.name, 20)).toBe(3);
    }
  });

  it("several limits are checked one after another, and the earlier ones charged for what a later one denies", async () => {
    const counters = await open();
    const limits = [
      { name: "all", windows: ["5/d"] },
      { name: "each", by: ["ip"], windows: ["2/d"] },
    ];
    let address = "192.0.2.1";
    const url = await limited(
      { counters, policies: { policies: [{ id: "several", limits, on_failure: "open" }] } },
      { ip: () => address },
    );
    expect(await statuses(url, 10)).toEqual([200, 200, ...Array(8).fill(429)]);
    address = "192.0.2.2";
    expect(await statuses(url, 3)).toEqual([200, 200, 429]);
  });

  it("an offline queue hangs a request for 30 s, and it is answered 429 then", async () => {
    const nowhere = await proxied();
    nowhere.refuse();
    const storeClient = new Redis(nowhere.url);
    storeClient.on("error", () => {});
    closing.push(() => storeClient.disconnect());
    const reasons: string[] = [];
    const onDegraded = (reason: string): void => void reasons.push(reason);
    const flexible = new RateLimiterRedis({ storeClient, points: 1, duration: long, keyPrefix: "queue", onDegraded });
    for (let i = 0; i < 3; i++) expect(await flexible.consume("a")).toBeInstanceOf(RateLimiterRes);
    expect(reasons).toHaveLength(3);

    const silent = await proxied();
    const counters = await open(silent.url, 200);
    const open200 = await limited("1/d", { name: "queue-open", counters });
    const closed503 = await limited("1/d", { name: "queue-closed", counters, onFailure: "closed" });
    const store = new ExpressStore({ counters, prefix: "queue", onDegraded });
    const express200 = await serve(expressRateLimit({ store, windowMs: longMs, limit: 1, validate: false }));
    silent.blackhole();
    expect(await statuses(open200, 3)).toEqual([200, 200, 200]);
    expect(await statuses(closed503, 3)).toEqual([503, 503, 503]);
    expect(await statuses(express200, 3)).toEqual([200, 200, 200]);
  });

  it("a timeout is answered as success without a word", async () => {
    const proxy = await proxied();
    const counters = await open(proxy.url, 200);
    const reasons: string[] = [];
    const onDegraded = (reason: string): void => void reasons.push(reason);
    const decisions: Decision[] = [];
    const url = await limited("1/d", {
      name: "word",
      counters,
      onDecision: (decision) => decisions.push(decision),
    });
    const hitting = [
      new ExpressStore({ counters, prefix: "word", onDegraded }),
      new RateLimiterRedis({ counters, keyPrefix: "word", points: 1, duration: long, onDegraded }),
    ] as const;
    expressRateLimit({ store: hitting[0], windowMs: longMs, limit: 1 });
    proxy.blackhole();
    const { status, headers } = await ask(url);
    expect([status, headers["x-ratelimit-degraded"]]).toEqual([200, "true"]);
    expect(decisions).toMatchObject([
      { allowed: true, reason: "degraded", degraded: expect.stringMatching(/^(storage_|process_starved)/) },
    ]);
    await hitting[0].increment("a");
    await hitting[1].consume("a");
    expect(reasons).toEqual([
      expect.stringMatching(/^(storage_|process_starved)/),
      expect.stringMatching(/^(storage_|process_starved)/),
    ]);
  });

  it("without a listener, a timeout is a process warning", async () => {
    const proxy = await proxied();
    const counters = await open(proxy.url, 200);
    const warned: string[] = [];
    const listen = (warning: Error & { code?: string }): void => void warned.push(String(warning.code));
    process.on("warning", listen);
    closing.push(() => process.off("warning", listen));
    const limiter = new RateLimiterRedis({ counters, keyPrefix: "quiet", points: 1, duration: long });
    proxy.blackhole();
    await limiter.consume("a");
    await limiter.consume("a");
    await expect.poll(() => warned, { timeout: 30_000 }).toEqual(["SLUICE_DEGRADED"]);
  });

  it("a command is sent again after a reconnect, and charged twice", async () => {
    const proxy = await proxied();
    const storeClient = new Redis(proxy.url);
    storeClient.on("error", () => {});
    closing.push(() => storeClient.disconnect());
    const options = { points: 100, duration: long, keyPrefix: "resent", onDegraded: () => {} };
    const ours = new RateLimiterRedis({ ...options, storeClient });
    expect(await ours.consume("a")).toMatchObject({ consumedPoints: 1 });
    for (let i = 0; i < 5; i++) {
      proxy.dropRepliesOnce();
      await ours.consume("a");
      // Until it is connected again, and so could have sent it again.
      await expect.poll(async () => (await ours.get("a")) !== null, { timeout: 30_000 }).toBe(true);
    }
    const direct = new RateLimiterRedis({ ...options, counters: await open() });
    expect((await direct.get("a"))!.consumedPoints).toBeLessThanOrEqual(6);
    // The same fault, to a limiter that uses the client itself: this is what the complaint is about.
    const theirs = new TheirRateLimiterRedis({ points: 100, duration: long, keyPrefix: "theirs", storeClient });
    let asked = 0;
    let consumedPoints = 0;
    while (asked < 20 && consumedPoints <= asked) {
      proxy.dropRepliesOnce();
      asked += 1;
      ({ consumedPoints } = await theirs.consume("a"));
    }
    expect(consumedPoints).toBeGreaterThan(asked);
  });

  it("two limiters share a key space unseen", async () => {
    const counters = await open();
    // A name or prefix is required.
    expect(() => limitExpress("1/d", { counters })).toThrow(/^name must be given/);
    expect(() => new ExpressStore({ counters })).toThrow(/^prefix is required/);
    expect(() => new FastifyStore({}, { counters })).toThrow(/^prefix is required/);
    // Equal prefixes of different libraries are separate, and so are different prefixes of each.
    for (const prefix of ["login", "login:", "log", "логин"]) {
      for (const make of makers) {
        const hitting = make({ counters, prefix, windowMs: longMs, limit: 2 });
        expect([hitting.name, prefix, await passed(hitting, "a", 3)]).toEqual([hitting.name, prefix, 2]);
      }
    }
    const url = await limited("2/d", { name: "login", counters, ip: () => "192.0.2.99" });
    expect(await statuses(url, 3)).toEqual([200, 200, 429]);
    // Neither can a key of one be written so that it is another's.
    const one = hittingExpress({ counters, prefix: "a", windowMs: longMs, limit: 1 });
    const other = hittingExpress({ counters, prefix: "a:b", windowMs: longMs, limit: 1 });
    expect(await Promise.all([one.hit("b:c"), other.hit("c")])).toEqual([true, true]);
  });

  it("limiters in memory share nothing, whatever they are called", async () => {
    const limiters = [1, 2].map(() => new RateLimiterMemory({ points: 1, duration: long }));
    for (const limiter of limiters) expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 1 });
    const urls = await Promise.all([1, 2].map(() => serve(expressRateLimit({ limit: 1, windowMs: longMs }))));
    for (const url of urls) expect(await statuses(url, 2)).toEqual([200, 429]);
  });
});
