import { createClient } from "@redis/client";
import {
  BurstyRateLimiter,
  type IRateLimiterOptions,
  type IRateLimiterRedisOptions,
  type IRateLimiterRes,
  type IRateLimiterStoreOptions,
  type IRateLimiterValkeyOptions,
  RateLimiterMemory,
  type RateLimiterOptions,
  RateLimiterRedis,
  RateLimiterRes,
  RateLimiterUnion,
  RateLimiterValkey,
} from "@sluice/middleware/rate-limiter-flexible";
import { RedisCounters } from "@sluice/redis";
import { startServer, type TestServer } from "@sluice/test-servers";
import { Redis } from "ioredis";
import { Redis as Valkey } from "iovalkey";
import * as theirs from "rate-limiter-flexible";

import { ManualClock, MemoryCounters } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

/** So long that no window ends during a test, in seconds. */
const long = 20 * 24 * 60 * 60;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function withClock(options: RateLimiterOptions): { limiter: RateLimiterMemory; clock: ManualClock } {
  const clock = new ManualClock();
  return { limiter: new RateLimiterMemory({ ...options, counters: new MemoryCounters({ clock }) }), clock };
}

/** The outcome of `consume`, resolved or rejected. */
async function outcome(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch((error: unknown) => error);
}

describe("rate-limiter-flexible: consuming", () => {
  it("resolves while there are points, and rejects with a RateLimiterRes, not an Error, when there are none", async () => {
    const { limiter } = withClock({ points: 3, duration: 60 });
    const first = await limiter.consume("a");
    expect(first).toBeInstanceOf(RateLimiterRes);
    expect(first).toMatchObject({ remainingPoints: 2, consumedPoints: 1, isFirstInDuration: true });
    expect(await limiter.consume("a", 2)).toMatchObject({
      remainingPoints: 0,
      consumedPoints: 3,
      isFirstInDuration: false,
    });
    const denied = await outcome(limiter.consume("a"));
    expect(denied).toBeInstanceOf(RateLimiterRes);
    expect(denied).not.toBeInstanceOf(Error);
    expect(denied).toMatchObject({ remainingPoints: 0, consumedPoints: 4, isFirstInDuration: false });
    expect((denied as RateLimiterRes).msBeforeNext).toBeGreaterThan(0);
    expect(JSON.parse(String(denied))).toEqual((denied as RateLimiterRes).toJSON());
    expect(await limiter.consume("b")).toMatchObject({ remainingPoints: 2 });
  });

  it("counts denied points", async () => {
    const { limiter } = withClock({ points: 3, duration: 60 });
    for (let i = 1; i <= 5; i++)
      expect(await outcome(limiter.consume("a", 4))).toMatchObject({ consumedPoints: 4 * i });
    expect(await limiter.get("a")).toMatchObject({ consumedPoints: 20, remainingPoints: 0 });
    expect(await outcome(limiter.consume("a"))).toMatchObject({ consumedPoints: 21 });
  });

  it("cannot count denied points with algorithms without a count, but still blocks with them", async () => {
    for (const algorithm of ["gcra", "token_bucket"] as const) {
      const { limiter, clock } = withClock({ points: 3, duration: 60, algorithm, blockDuration: 100 });
      await limiter.consume("a", 3);
      expect(await outcome(limiter.consume("a"))).toMatchObject({ consumedPoints: 4, msBeforeNext: 100_000 });
      expect(await limiter.get("a")).toMatchObject({ consumedPoints: 4, msBeforeNext: 100_000 });
      clock.advance(100_000);
      expect(await limiter.consume("a", 3)).toMatchObject({ consumedPoints: 3 });
      expect(await outcome(limiter.consume("b", 4))).toMatchObject({ consumedPoints: 4 });
    }
  });

  it("reports when points are back by algorithms without fixed windows", async () => {
    const { limiter, clock } = withClock({ points: 2, duration: 60, algorithm: "sliding_log" });
    await limiter.consume("a");
    clock.advance(20_000);
    await limiter.consume("a");
    clock.advance(10_000);
    // The refused point counts as well: of three in the log two have to go before another one passes.
    expect(await outcome(limiter.consume("a"))).toMatchObject({ consumedPoints: 3, msBeforeNext: 50_000 });
    clock.advance(50_000);
    expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 2 });
  });

  it("knows durations to the millisecond", async () => {
    for (const duration of [0.5, 1.9]) {
      const { limiter, clock } = withClock({ points: 1, duration });
      const leftMs = limiter.msDuration - (clock.epochMs() % limiter.msDuration);
      expect(await limiter.consume("a")).toMatchObject({ msBeforeNext: leftMs });
      clock.advance(leftMs - 1);
      expect(await outcome(limiter.consume("a"))).toMatchObject({ consumedPoints: 2, msBeforeNext: 1 });
      clock.advance(1);
      expect(await limiter.consume("a")).toMatchObject({ isFirstInDuration: true });
    }
  });

  it("never gives back points consumed under a duration of 0", async () => {
    const { limiter, clock } = withClock({ points: 1, duration: 0 });
    expect(await limiter.consume("a")).toMatchObject({ msBeforeNext: -1 });
    clock.advance(29 * 24 * 60 * 60 * 1000);
    expect(await outcome(limiter.consume("a"))).toMatchObject({ msBeforeNext: -1, consumedPoints: 2 });
  });

  it("follows points that are changed while it runs", async () => {
    const { limiter } = withClock({ points: 1, duration: 60 });
    await limiter.consume("a");
    limiter.points = 3;
    expect(await limiter.consume("a")).toMatchObject({ remainingPoints: 1, consumedPoints: 2 });
  });

  it("blocks for blockDuration after a denial, and more denials do not renew it", async () => {
    const { limiter, clock } = withClock({ points: 1, duration: 1, blockDuration: 10 });
    await limiter.consume("a");
    expect(await outcome(limiter.consume("a"))).toMatchObject({ msBeforeNext: 10_000 });
    clock.advance(6000);
    expect(await outcome(limiter.consume("a"))).toMatchObject({ msBeforeNext: 4000, consumedPoints: 3 });
    clock.advance(3999);
    expect(await outcome(limiter.consume("a"))).toMatchObject({ msBeforeNext: 1 });
    clock.advance(1);
    expect(await limiter.consume("a")).toMatchObject({ isFirstInDuration: true });
  });

  it("refuses unsupported options at once, by name", async () => {
    const make =
      (more: object): (() => unknown) =>
      () =>
        new RateLimiterMemory({ points: 1, duration: 1, ...more });
    expect(make({ execEvenly: true })).toThrow(/^execEvenly is not supported/);
    expect(make({ points: Number.NaN })).toThrow(/^points must be/);
    expect(make({ duration: -1 })).toThrow(/^duration must be/);
    expect(make({ blockDuration: -1 })).toThrow(/^blockDuration must be/);
    expect(make({ keyPrefix: 7 })).toThrow(/^keyPrefix must be/);
    expect(make({ points: 5, inMemoryBlockOnConsumed: 4 })).toThrow(/^inMemoryBlockOnConsumed must be/);
    expect(make({ insuranceLimiter: {} })).toThrow(/^insuranceLimiter must be/);
    expect(make({ inMemoryBlockDuration: 4 })).toThrow(/^inMemoryBlockDuration needs/);
    const redis =
      (more: object): (() => unknown) =>
      () =>
        new RateLimiterRedis({ points: 1, duration: 1, ...more });
    expect(redis({})).toThrow(/^storeClient must be/);
    expect(redis({ storeClient: {} })).toThrow(/client of ioredis/);
    expect(redis({ customIncrTtlLuaScript: "return 1" })).toThrow(/^customIncrTtlLuaScript is not supported/);
    expect(redis({ useRedis3AndLowerPackage: true })).toThrow(/^useRedis3AndLowerPackage is not supported/);
    expect(make({ points: 5, blockOnConsumed: 4 })).toThrow(/^blockOnConsumed must be/);
    expect(make({ duration: 3654 * 24 * 60 * 60 })).toThrow(/^duration must be .* \(ten years\)/);
    expect(make({ blockDuration: 31 * 24 * 60 * 60 })).toThrow(/^blockDuration must be .* \(30 days\)/);
    const client = { storeClient: new Redis({ lazyConnect: true }), keyPrefix: "refused" };
    for (const name of ["rejectIfRedisNotReady", "rejectIfValkeyNotReady"]) {
      expect(redis({ ...client, [name]: true, onFailure: "open" })).toThrow(
        new RegExp(`^${name} rejects .* onFailure open`),
      );
      expect(redis({ ...client, [name]: true, onFailure: "closed" })).not.toThrow();
    }
    const { limiter } = withClock({ points: 5, duration: 60 });
    await expect(limiter.consume("a", 1, { customDuration: 5 })).rejects.toThrow(/^customDuration/);
    await expect(limiter.consume("a", 0.5)).rejects.toThrow(/^points must be a whole number/);
    await expect(limiter.consume("a", -1)).rejects.toThrow(/^points must be/);
    await expect(limiter.consume("a", 100_001)).rejects.toThrow(/^points must be/);
    await expect(limiter.penalty("a", 0.5)).rejects.toThrow(/^points must be/);
    await expect(limiter.reward("a", 1e15)).rejects.toThrow(/^points must be/);
    await expect(limiter.set("a", Number.NaN)).rejects.toThrow(/^points must be/);
    await expect(limiter.set("a", 1, 7)).rejects.toThrow(/^secDuration must be/);
    await expect(limiter.block("a", -7)).rejects.toThrow(/^secDuration must be/);
    await expect(limiter.block("a", 31 * 24 * 60 * 60)).rejects.toThrow(/^secDuration must be .* \(30 days\)/);
    expect(await limiter.get("a")).toBeNull();
  });
});

describe("rate-limiter-flexible: everything else", () => {
  it("penalizes beyond the points, and rewards down to nothing", async () => {
    const { limiter } = withClock({ points: 5, duration: 60 });
    expect(await limiter.penalty("a", 3)).toMatchObject({
      remainingPoints: 2,
      consumedPoints: 3,
      isFirstInDuration: true,
    });
    expect(await limiter.penalty("a", 250_000)).toMatchObject({ remainingPoints: 0, consumedPoints: 250_003 });
    expect(await limiter.get("a")).toMatchObject({ remainingPoints: 0, consumedPoints: 250_003 });
    expect(await outcome(limiter.consume("a"))).toMatchObject({ consumedPoints: 250_004 });
    expect(await limiter.reward("a", 250_001)).toMatchObject({ remainingPoints: 2, consumedPoints: 3 });
    expect(await limiter.reward("a", 9)).toMatchObject({ remainingPoints: 5, consumedPoints: 0 });
    expect(await limiter.consume("a", 5)).toMatchObject({ remainingPoints: 0 });
    await limiter.reward("a");
    expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 5 });
  });

  it("sets, gets and deletes", async () => {
    const { limiter } = withClock({ points: 5, duration: 60 });
    expect(await limiter.get("a")).toBeNull();
    expect(await limiter.delete("a")).toBe(false);
    expect(await limiter.set("a", 4, 60)).toMatchObject({ consumedPoints: 4, msBeforeNext: 60_000 });
    expect(await limiter.get("a")).toMatchObject({ consumedPoints: 4, remainingPoints: 1, isFirstInDuration: false });
    await limiter.set("a", 0);
    expect(await limiter.consume("a", 0)).toMatchObject({ consumedPoints: 0, remainingPoints: 5 });
    await limiter.consume("a", 5);
    expect(await limiter.delete("a")).toBe(true);
    expect(await limiter.get("a")).toBeNull();
  });

  it("blocks a key by hand, for a time, and delete lifts it", async () => {
    const { limiter, clock } = withClock({ points: 5, duration: 60 });
    expect(await limiter.block("a", 30)).toMatchObject({ remainingPoints: 0, consumedPoints: 6, msBeforeNext: 30_000 });
    expect(await outcome(limiter.consume("a"))).toMatchObject({
      remainingPoints: 0,
      consumedPoints: 7,
      msBeforeNext: 30_000,
    });
    expect(await limiter.penalty("a", 2)).toMatchObject({ consumedPoints: 9 });
    expect(await limiter.reward("a", 1)).toMatchObject({ consumedPoints: 8 });
    expect(await outcome(limiter.consume("a", 0))).toBeInstanceOf(RateLimiterRes);
    expect(await limiter.get("a")).toMatchObject({ remainingPoints: 0, consumedPoints: 8, msBeforeNext: 30_000 });
    clock.advance(30_000);
    expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 1 });
    await limiter.block("a", 0);
    clock.advance(29 * 24 * 60 * 60 * 1000);
    expect(await outcome(limiter.consume("a"))).toMatchObject({ msBeforeNext: 24 * 60 * 60 * 1000 });
    expect(await limiter.delete("a")).toBe(true);
    expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 1 });
  });

  it("has the names of their types, for code that was written with them", async () => {
    const options: IRateLimiterOptions = { points: 2, duration: long, keyPrefix: "types", execEvenly: false };
    const res: IRateLimiterRes = await new RateLimiterMemory(options).consume("a");
    expect(res.remainingPoints).toBe(1);
    const store: IRateLimiterStoreOptions = { ...options, storeClient: new Redis({ lazyConnect: true }) };
    const redis: IRateLimiterRedisOptions = { ...store, rejectIfRedisNotReady: true };
    const valkey: IRateLimiterValkeyOptions = { ...store, rejectIfValkeyNotReady: true };
    expect(new RateLimiterRedis(redis).points + new RateLimiterValkey(valkey).points).toBe(4);
  });

  it("names keys as theirs does", () => {
    for (const keyPrefix of [undefined, "", "login"]) {
      const options = { points: 1, duration: 1, ...(keyPrefix !== undefined && { keyPrefix }) };
      const [our, their] = [new RateLimiterMemory(options), new theirs.RateLimiterMemory(options)];
      for (const key of ["a", 7]) {
        expect(our.getKey(key)).toBe(String(their.getKey(key)));
        expect(our.parseKey(our.getKey(key))).toBe(String(key));
      }
    }
  });

  it("denies keys that have consumed inMemoryBlockOnConsumed in this process, without asking", async () => {
    const counters = new MemoryCounters({ clock: new ManualClock() });
    const options = { points: 1, duration: long, counters, keyPrefix: "remembering" };
    const remembering = new RateLimiterMemory({ ...options, inMemoryBlockOnConsumed: 2, inMemoryBlockDuration: long });
    const plain = new RateLimiterMemory(options);
    await remembering.consume("a");
    expect(await outcome(remembering.consume("a"))).toMatchObject({ consumedPoints: 2, msBeforeNext: long * 1000 });
    await plain.delete("a");
    expect(await outcome(remembering.consume("a"))).toBeInstanceOf(RateLimiterRes);
    expect(await plain.get("a")).toBeNull();
    remembering.deleteInMemoryBlockedAll();
    expect(await remembering.consume("a")).toMatchObject({ consumedPoints: 1 });
    await outcome(remembering.consume("a"));
    await remembering.delete("a");
    expect(await remembering.consume("a")).toMatchObject({ consumedPoints: 1 });
  });

  it("a union asks all of its limiters, each of which counts every request, as theirs does", async () => {
    const counters = new MemoryCounters();
    const ours = [
      new RateLimiterMemory({ counters, keyPrefix: "day", points: 4, duration: long }),
      new RateLimiterMemory({ counters, keyPrefix: "minute", points: 2, duration: long / 2 }),
    ] as const;
    const originals = [
      new theirs.RateLimiterMemory({ keyPrefix: "day", points: 4, duration: long }),
      new theirs.RateLimiterMemory({ keyPrefix: "minute", points: 2, duration: long / 2 }),
    ] as const;
    for (const [[day, minute], union] of [
      [ours, new RateLimiterUnion(...ours)],
      [originals, new theirs.RateLimiterUnion(...originals)],
    ] as const) {
      expect(await union.consume("a", 2)).toMatchObject({
        day: { remainingPoints: 2 },
        minute: { remainingPoints: 0 },
      });
      const denied = await outcome(union.consume("a"));
      expect(denied).toMatchObject({ minute: { consumedPoints: 3 } });
      expect(Object.keys(denied as object)).toEqual(["minute"]);
      expect(await day.get("a")).toMatchObject({ consumedPoints: 3 });
      expect(await minute.get("a")).toMatchObject({ consumedPoints: 3 });
      await Promise.all([day.delete("a"), minute.delete("a")]);
    }
    const [day] = ours;
    expect(() => new RateLimiterUnion(day, day)).toThrow(/different keyPrefix/);
    expect(() => new RateLimiterUnion()).toThrow(/^limiters must be/);
  });

  it("a bursty limiter uses its burst when the steady points are used up", async () => {
    const steady = new RateLimiterMemory({ points: 1, duration: long });
    const burst = new RateLimiterMemory({ keyPrefix: "burst", points: 1, duration: long });
    const bursty = new BurstyRateLimiter(steady, burst);
    expect(await bursty.consume("a")).toMatchObject({ consumedPoints: 1 });
    expect(await burst.get("a")).toBeNull();
    expect(await bursty.consume("a")).toMatchObject({ consumedPoints: 2 });
    expect(await burst.get("a")).toMatchObject({ consumedPoints: 1 });
    expect(await outcome(bursty.consume("a"))).toBeInstanceOf(RateLimiterRes);
    expect(await bursty.get("a")).toMatchObject({ consumedPoints: 3 });
    expect(bursty.points).toBe(1);
  });
});

describe("rate-limiter-flexible: the same conversations with theirs", () => {
  type Step = readonly [
    method: "consume" | "penalty" | "reward" | "get" | "delete" | "block" | "set",
    ...rest: number[],
  ];
  const conversations: readonly (readonly [name: string, points: number, steps: readonly Step[]])[] = [
    ["up to the limit and one beyond", 3, [["get"], ["consume"], ["consume"], ["get"], ["consume"], ["consume"]]],
    ["costs", 10, [["consume", 4], ["consume", 5], ["get"], ["consume", 1], ["consume", 1]]],
    [
      "penalties and rewards",
      5,
      [["penalty", 3], ["consume"], ["reward", 2], ["get"], ["consume", 3], ["penalty", 4], ["get"]],
    ],
    ["deleting", 2, [["delete"], ["consume"], ["consume"], ["delete"], ["get"], ["consume", 2], ["consume"]]],
    ["setting", 5, [["set", 4, long], ["get"], ["consume"], ["consume"]]],
    ["blocking", 5, [["consume"], ["block", 1000], ["get"], ["delete"], ["consume"]]],
    ["no points", 0, [["get"], ["consume"]]],
  ];
  /** Times depend on when the window began, which is a deliberate difference. */
  const toPlain = (result: unknown): unknown => {
    if (typeof result !== "object" || result === null || result instanceof Error) return result;
    const { remainingPoints, consumedPoints, isFirstInDuration } = result as RateLimiterRes;
    return { remainingPoints, consumedPoints, isFirstInDuration };
  };
  const speak = async (limiter: object, steps: readonly Step[]): Promise<unknown[]> => {
    const answers: unknown[] = [];
    for (const [method, ...rest] of steps) {
      const call = Reflect.get(limiter, method) as (key: string, ...more: number[]) => Promise<unknown>;
      answers.push(
        await call.call(limiter, "key", ...rest).then(
          (result) => ({ resolved: toPlain(result) }),
          (result: unknown) => ({ rejected: toPlain(result) }),
        ),
      );
    }
    return answers;
  };

  it.each(conversations)("%s", async (_name, points, steps) => {
    const their = new theirs.RateLimiterMemory({ points, duration: long });
    const expected = await speak(their, steps);
    await their.delete("key");
    expect(await speak(new RateLimiterMemory({ points, duration: long }), steps)).toEqual(expected);
  });

  it("differs on purpose: the original rewards beyond the consumed points", async () => {
    const rewarded: Step[] = [
      ["reward", 5],
      ["consume", 3],
    ];
    expect(await speak(new theirs.RateLimiterMemory({ points: 2, duration: long }), rewarded)).toMatchObject([
      {},
      { resolved: { consumedPoints: -2 } },
    ]);
    expect(await speak(new RateLimiterMemory({ points: 2, duration: long }), rewarded)).toMatchObject([
      {},
      { rejected: { consumedPoints: 3 } },
    ]);
  });
});

describe("rate-limiter-flexible: on a real server", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
  });
  afterAll(() => server.close());

  it.each([
    ["ioredis", () => new Redis(server.url)],
    ["iovalkey", () => new Valkey(server.url)],
    [
      "node-redis",
      async () => {
        const client = createClient({ url: server.url });
        await client.connect();
        return client;
      },
    ],
  ])("limiters over a client of %s share what every process consumes, and end with the client", async (name, open) => {
    const options = { points: 20, duration: long, keyPrefix: name };
    const clients = [await open(), await open()];
    const limiters = clients.map((storeClient) => new RateLimiterRedis({ ...options, storeClient }));
    const asked = Array.from({ length: 50 }, (_, i) => outcome(limiters[i % 2]!.consume("a")));
    const res = (await Promise.all(asked)) as RateLimiterRes[];
    expect(res.filter(({ consumedPoints }) => consumedPoints <= 20)).toHaveLength(20);
    expect(res.map(({ consumedPoints }) => consumedPoints).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 50 }, (_, i) => i + 1),
    );
    const [first, second] = limiters as [RateLimiterRedis, RateLimiterRedis];
    expect(await first.reward("a", 45)).toMatchObject({ consumedPoints: 5 });
    expect(await second.penalty("a", 40)).toMatchObject({ consumedPoints: 45 });
    await first.set("a", 3, long);
    expect(await second.get("a")).toMatchObject({ consumedPoints: 3 });
    await first.block("a", 1000);
    expect(await outcome(second.consume("a"))).toMatchObject({ consumedPoints: 22 });
    expect(await second.delete("a")).toBe(true);
    expect(await first.consume("a")).toMatchObject({ consumedPoints: 1 });
    for (const client of clients) {
      if ("disconnect" in client && !("destroy" in client)) client.disconnect();
      else (client as { destroy(): void }).destroy();
    }
    // Its connections ended with the client: counters are unavailable, so everything passes, uncounted.
    await expect.poll(() => outcome(first.consume("a", 20)), { timeout: 30_000 }).toMatchObject({ consumedPoints: 0 });
  });

  it.each([
    ["ioredis", (keyPrefix: string) => new Redis(server.url, { keyPrefix })],
    ["iovalkey", (keyPrefix: string) => new Valkey(server.url, { keyPrefix })],
    ["node-redis", (keyPrefix: string) => createClient({ url: server.url, keyPrefix }).connect()],
  ])("clients of %s with different prefixes count separately, in keys under their prefixes", async (name, open) => {
    const observer = new Redis(server.url);
    closing.push(() => observer.disconnect());
    const consumed: unknown[] = [];
    // The last two are not valid at the beginning of a counter's name.
    for (const keyPrefix of ["shop:", "blog:", "{shop} ", `${"long".repeat(20)}:`]) {
      const storeClient = await open(`${name}-${keyPrefix}`);
      closing.push(() => (storeClient instanceof Redis ? storeClient.disconnect() : storeClient.quit()));
      const limiter = new RateLimiterRedis({ storeClient, points: 5, duration: long, keyPrefix: "apart" });
      consumed.push((await limiter.consume("a")).consumedPoints);
    }
    expect(consumed).toEqual([1, 1, 1, 1]);
    expect(await observer.keys(`${name}-shop:*`)).toHaveLength(1);
    expect(await observer.keys(`${name}-blog:*`)).toHaveLength(1);
  });

  it.each([
    [
      "ioredis",
      async () => {
        const client = new Redis(server.url);
        return { client, stop: () => client.disconnect(), go: () => client.connect() };
      },
    ],
    [
      "node-redis",
      async () => {
        const client = await createClient({ url: server.url }).connect();
        return { client, stop: () => client.destroy(), go: () => client.connect() };
      },
    ],
  ])("counts again when a client of %s that has ended is connected again", async (name, open) => {
    const { client, stop, go } = await open();
    const limiter = new RateLimiterRedis({
      storeClient: client,
      points: 5,
      duration: long,
      keyPrefix: `again ${name}`,
    });
    expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 1 });
    stop();
    await expect.poll(() => outcome(limiter.consume("a")), { timeout: 30_000 }).toMatchObject({ consumedPoints: 0 });
    await go();
    closing.push(stop);
    await limiter.delete("a");
    expect(await limiter.consume("a", 2)).toMatchObject({ consumedPoints: 2 });
    expect(await limiter.consume("a", 2)).toMatchObject({ consumedPoints: 4 });
  });

  it("makes one set of connections for a client, however many limiters there are", async () => {
    const storeClient = new Redis(server.url);
    const observer = new Redis(server.url);
    closing.push(() => storeClient.disconnect());
    closing.push(() => observer.disconnect());
    const count = async (): Promise<number> =>
      String(await observer.client("LIST"))
        .split("\n")
        .filter((line) => line.includes("name=sluice")).length;
    await expect.poll(count, { timeout: 30_000 }).toBe(0);
    for (let i = 1; i <= 20; i++) {
      await new RateLimiterValkey({ storeClient, points: i, duration: long, keyPrefix: "many" }).consume("a");
    }
    expect(await count()).toBe(1);
  });

  it("warns where limiters without a keyPrefix share their counters, and gives every key an end", async () => {
    const storeClient = new Redis(server.url);
    closing.push(() => storeClient.disconnect());
    const warned: string[] = [];
    const listen = (warning: Error & { code?: string }): void => void warned.push(String(warning.code));
    process.on("warning", listen);
    closing.push(() => process.off("warning", listen));
    const options = { storeClient, points: 5, duration: long };
    await new RateLimiterRedis(options).consume("ends");
    await new RateLimiterRedis({ ...options, duration: 0, keyPrefix: "zero" }).consume("ends");
    await new RateLimiterRedis({ ...options, keyPrefix: "blocked" }).block("ends", 100);
    new RateLimiterRedis(options);
    await expect.poll(() => warned).toEqual(["SLUICE_SHARED_COUNTERS"]);
    const keys = await storeClient.keys("*ends*");
    expect(keys.length).toBeGreaterThanOrEqual(3);
    for (const key of keys) expect(await storeClient.pttl(key)).toBeGreaterThan(0);
  });

  it("without its counters passes, or rejects with an Error if configured, or asks its insurance", async () => {
    const gone = await startServer({ flavor: "valkey" });
    const counters = new RedisCounters({ servers: gone.url, deadlineMs: 200 });
    closing.push(() => counters.close());
    await counters.connected();
    const reasons: string[] = [];
    const onDegraded = (reason: string): void => void reasons.push(reason);
    const options = { counters, points: 1, duration: long, onDegraded };
    const open = new RateLimiterRedis({ ...options, keyPrefix: "open" });
    const closed = new RateLimiterRedis({ ...options, keyPrefix: "closed", onFailure: "closed" });
    const rejecting = new RateLimiterRedis({ ...options, keyPrefix: "rejecting", rejectIfRedisNotReady: true });
    const insured = new RateLimiterRedis({
      ...options,
      keyPrefix: "insured",
      blockDuration: 5,
      insuranceLimiter: new RateLimiterMemory({ points: 1, duration: long }),
    });
    const insuredByTheirs = new RateLimiterRedis({
      ...options,
      keyPrefix: "theirs",
      insuranceLimiter: new theirs.RateLimiterMemory({ points: 1, duration: 1 }),
    });
    await gone.close();
    for (let i = 0; i < 3; i++) expect(await open.consume("a")).toMatchObject({ consumedPoints: 0 });
    expect(await open.penalty("a")).toBeInstanceOf(RateLimiterRes);
    expect(await open.get("a")).toBeNull();
    for (let i = 0; i < 2; i++) await expect(closed.consume("a")).rejects.toThrow(/counters/);
    await expect(closed.block("a", 1)).rejects.toThrow(/counters/);
    await expect(rejecting.consume("a")).rejects.toThrow(/counters/);
    await expect(rejecting.get("a")).rejects.toThrow(/counters/);
    for (const limiter of [insured, insuredByTheirs]) {
      expect(await limiter.consume("a")).toMatchObject({ consumedPoints: 1 });
      const denied = await outcome(limiter.consume("a"));
      expect(denied).toBeInstanceOf(RateLimiterRes);
      expect(denied).toMatchObject({ consumedPoints: 2 });
      expect(await limiter.delete("a")).toBe(true);
    }
    expect(insured.insuranceLimiter!.blockDuration).toBe(5);
    expect(reasons.length).toBeGreaterThanOrEqual(8);
  });
});
