import { Controller, Get } from "@nestjs/common";
import { APP_GUARD } from "@nestjs/core";
import * as theirs from "@nestjs/throttler";
import throttler from "@nestjs/throttler/package.json" with { type: "json" };
import * as ours from "@sluice/middleware/nest-throttler";
import {
  getStorageToken,
  SkipThrottle,
  SluiceThrottlerStorage,
  type StoreOptions,
  ThrottlerGuard,
  ThrottlerModule,
  type ThrottlerModuleOptions,
} from "@sluice/middleware/nest-throttler";
import { RedisCounters } from "@sluice/redis";
import { startServer, type TestServer } from "@sluice/test-servers";
import { ManualClock, MemoryCounters, StoreUnavailable } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ask, readStatuses } from "./http-exchange.ts";
import { decorate, startNest } from "./nest-app.ts";

/** So long that no window ends in the middle of a test. */
const longMs = 1000 * 24 * 3_600_000;

/** A storage and its clock, which is at the beginning of every window of a length that divides an hour or is 1 900 ms. */
function onManualTime(options: StoreOptions = {}): { storage: SluiceThrottlerStorage; clock: ManualClock } {
  const clock = new ManualClock(19 * 3_600_000 * 25_000);
  return { storage: new SluiceThrottlerStorage({ counters: new MemoryCounters({ clock }), ...options }), clock };
}

describe(`@nestjs/throttler ${throttler.version}: the storage`, () => {
  it("counts up to the limit, then refuses, in whole seconds", async () => {
    const { storage, clock } = onManualTime();
    const hit = () => storage.increment("ada", 60_000, 2, 0, "default");
    expect(await hit()).toEqual({ totalHits: 1, timeToExpire: 60, isBlocked: false, timeToBlockExpire: 0 });
    clock.advance(1500);
    expect(await hit()).toEqual({ totalHits: 2, timeToExpire: 59, isBlocked: false, timeToBlockExpire: 0 });
    for (let i = 0; i < 5; i++) {
      expect(await hit()).toEqual({ totalHits: 3, timeToExpire: 59, isBlocked: true, timeToBlockExpire: 59 });
    }
    expect(await storage.increment("bob", 60_000, 2, 0, "default")).toMatchObject({ totalHits: 1 });
    // Refused hits were not charged.
    clock.advance(58_500);
    expect(await hit()).toEqual({ totalHits: 1, timeToExpire: 60, isBlocked: false, timeToBlockExpire: 0 });
  });

  it.each([500, 1900])("keeps to a ttl of %i ms to the millisecond", async (ttl) => {
    const { storage, clock } = onManualTime();
    const hit = async () => (await storage.increment("ada", ttl, 1, 0, "default")).isBlocked;
    expect([await hit(), await hit()]).toEqual([false, true]);
    clock.advance(ttl - 1);
    expect(await hit()).toBe(true);
    clock.advance(1);
    expect([await hit(), await hit()]).toEqual([false, true]);
  });

  it("blocks for the configured time after the first refusal, whatever arrives meanwhile", async () => {
    const { storage, clock } = onManualTime();
    const hit = () => storage.increment("ada", 1000, 1, 10_500, "default");
    await hit();
    expect(await hit()).toEqual({
      totalHits: 2,
      timeToExpire: expect.any(Number),
      isBlocked: true,
      timeToBlockExpire: 11,
    });
    for (let i = 0; i < 10; i++) {
      clock.advance(1000);
      expect(await hit()).toMatchObject({ totalHits: 2, isBlocked: true, timeToBlockExpire: 10 - i });
    }
    clock.advance(499);
    expect(await hit()).toMatchObject({ isBlocked: true, timeToBlockExpire: 1 });
    clock.advance(1);
    expect(await hit()).toMatchObject({ totalHits: 1, isBlocked: false });
  });

  it("starts fresh after a block that is shorter than the ttl", async () => {
    const { storage, clock } = onManualTime();
    const hit = () => storage.increment("ada", 10_000, 2, 1000, "default");
    expect([await hit(), await hit()]).toMatchObject([{ isBlocked: false }, { isBlocked: false }]);
    expect(await hit()).toMatchObject({ totalHits: 3, isBlocked: true, timeToBlockExpire: 1 });
    clock.advance(999);
    expect(await hit()).toMatchObject({ totalHits: 3, isBlocked: true, timeToBlockExpire: 1 });
    clock.advance(1);
    expect([await hit(), await hit()]).toMatchObject([{ totalHits: 1 }, { totalHits: 2, isBlocked: false }]);
    expect(await hit()).toMatchObject({ isBlocked: true });
  });

  it("forgets nothing where full memory has no room for a block", async () => {
    const clock = new ManualClock(19 * 3_600_000 * 25_000);
    const counters = new MemoryCounters({ clock, maxCounters: 8 });
    const storage = new SluiceThrottlerStorage({ counters });
    const hit = async (key: string) => (await storage.increment(key, 10_000, 1, 1000, "default")).isBlocked;
    const keys = Array.from({ length: 20 }, (_, i) => `key ${i}`);
    const passed = new Map(keys.map((key) => [key, 0]));
    for (let round = 0; round < 3; round++) {
      // Those that found no room are decided as if they were counted, and are not.
      for (const key of keys) if (!(await hit(key))) passed.set(key, passed.get(key)! + 1);
    }
    expect(passed.get("key 0")).toBe(1);
  });

  it("refuses times that it cannot keep by their names, and does not cut them", async () => {
    const { storage } = onManualTime();
    const dayMs = 24 * 3_600_000;
    await expect(storage.increment("ada", 3654 * dayMs, 1, 0, "default")).rejects.toThrow(
      /^ttl must be at most 3653 days/,
    );
    await expect(storage.increment("ada", dayMs, 1, 367 * dayMs, "default")).rejects.toThrow(/^blockDuration must be/);
    // The default is the ttl.
    const hit = () => storage.increment("bob", 3000 * dayMs, 1, 3000 * dayMs, "default");
    expect([await hit(), await hit()]).toMatchObject([{ isBlocked: false }, { isBlocked: true }]);
  });

  it("takes whatever number a throttler may have for its limit", async () => {
    const { storage } = onManualTime();
    const hits = async (limit: number, ttl = 60_000): Promise<boolean[]> => {
      const blocked: boolean[] = [];
      for (let i = 0; i < 3; i++) {
        blocked.push((await storage.increment(`by ${limit}`, ttl, limit, 0, "default")).isBlocked);
      }
      return blocked;
    };
    expect(await hits(0)).toEqual([true, true, true]);
    expect(await storage.increment("none", 60_000, 0, 0, "default")).toMatchObject({
      totalHits: 1,
      timeToBlockExpire: 60,
    });
    expect(await hits(-1)).toEqual([true, true, true]);
    expect(await hits(1.9)).toEqual([false, true, true]);
    expect(await hits(Number.POSITIVE_INFINITY)).toEqual([false, false, false]);
    expect(await hits(Number.MAX_SAFE_INTEGER, 1)).toEqual([false, false, false]);
    await expect(hits(Number.NaN)).rejects.toThrow(/limit/);
    await expect(hits(1, Number.NaN)).rejects.toThrow(/milliseconds/);
  });

  it("keeps a key's hits when its limit changes, and starts afresh when its ttl does", async () => {
    const { storage } = onManualTime();
    await storage.increment("ada", 60_000, 5, 0, "default");
    await storage.increment("ada", 60_000, 5, 0, "default");
    expect(await storage.increment("ada", 60_000, 3, 0, "default")).toMatchObject({ totalHits: 3, isBlocked: false });
    expect(await storage.increment("ada", 60_000, 3, 0, "default")).toMatchObject({ isBlocked: true });
    expect(await storage.increment("ada", 60_000, 9, 0, "default")).toMatchObject({ totalHits: 4, isBlocked: false });
    expect(await storage.increment("ada", 30_000, 3, 0, "default")).toMatchObject({ totalHits: 1 });
  });

  it("counts by another algorithm if configured", async () => {
    const { storage, clock } = onManualTime({ algorithm: "sliding_log" });
    clock.advance(59_000);
    const hit = async () => (await storage.increment("ada", 60_000, 1, 0, "default")).isBlocked;
    expect(await hit()).toBe(false);
    clock.advance(59_999);
    expect(await hit()).toBe(true);
    clock.advance(1);
    expect(await hit()).toBe(false);
  });

  it("distinguishes all keys and throttlers, however they are written", async () => {
    const { storage } = onManualTime();
    const long = "x".repeat(100_000);
    const pairs = [
      ["default", ""],
      ["default", "|"],
      ["default", "a|b"],
      ["default|a", "b"],
      ["default\\", "|a"],
      ["default\\|", "a"],
      ["", "default|a"],
      ["default", "__proto__"],
      ["__proto__", "default"],
      ["default", "constructor"],
      ["default", "\ud800"],
      ["default", "\ud801"],
      ["default", "\ufffd"],
      ["default", "\0"],
      ["default", "{x}\r\nFLUSHALL"],
      ["default", long],
      ["default", `${long}y`],
      [long, "default"],
      ["default", `sha256:${"0".repeat(64)}`],
      ["short", "a"],
      ["long", "a"],
    ] as const;
    for (const [name, key] of pairs) {
      expect(await storage.increment(key, 60_000, 5, 0, name)).toMatchObject({ totalHits: 1 });
    }
    for (const [name, key] of pairs) {
      expect(await storage.increment(key, 60_000, 5, 0, name)).toMatchObject({ totalHits: 2 });
    }
  });

  it("passes while counters are unavailable, or answers 503, or counts locally, as configured", async () => {
    const memory = new MemoryCounters();
    const unavailable = () => Promise.reject(new StoreUnavailable("storage_timeout"));
    const counters = new Proxy(memory, {
      get: (target, name) => {
        if (name === "local") return false;
        if (name === "close") return () => target.close();
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? unavailable : value;
      },
    });
    const hits = async (onFailure?: StoreOptions["onFailure"]): Promise<boolean[]> => {
      const storage = new SluiceThrottlerStorage({
        counters,
        prefix: `fails-${onFailure}`,
        onFailure,
        onDegraded: () => {},
      });
      const blocked: boolean[] = [];
      for (let i = 0; i < 5; i++) {
        blocked.push((await storage.increment("ada", 60_000, 4, 0, "default")).isBlocked);
      }
      return blocked;
    };
    expect(await hits()).toEqual([false, false, false, false, false]);
    expect((await hits("local")).at(-1)).toBe(true);
    await expect(hits("closed")).rejects.toMatchObject({ status: 503 });
  });
});

describe(`@nestjs/throttler ${throttler.version}: the module`, () => {
  const running: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of running.splice(0)) await close();
  });

  class Routes {
    hello(): string {
      return "hello";
    }
    free(): string {
      return "free";
    }
  }
  Controller()(Routes);
  decorate(Routes.prototype, "hello", Get("hello"));
  decorate(Routes.prototype, "free", Get("free"), SkipThrottle());

  async function start(
    module: ReturnType<typeof ThrottlerModule.forRoot>,
  ): Promise<{ readonly url: string; readonly storage: unknown }> {
    const { app, url, close } = await startNest({
      imports: [module],
      controllers: [Routes],
      providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
    });
    running.push(close);
    return { url, storage: app.get(getStorageToken()) };
  }

  it("is the same as theirs by every name, but for the storage", () => {
    const [all, known]: readonly Readonly<Record<string, unknown>>[] = [{ ...ours }, { ...theirs }];
    const names = Object.keys(known!).filter((name) => name !== "default" && name !== "module.exports");
    expect(names.length).toBeGreaterThan(10);
    const changed = names.filter((name) => all![name] !== known![name]);
    expect(changed).toEqual(["ThrottlerModule"]);
  });

  it("limits an app that changed nothing but the import", async () => {
    const throttlers = [{ ttl: longMs, limit: 2, blockDuration: 0 }];
    for (const module of [
      ThrottlerModule.forRoot(throttlers),
      ThrottlerModule.forRoot({ throttlers }),
      ThrottlerModule.forRootAsync({ useFactory: () => throttlers }),
    ]) {
      const { url, storage } = await start(module);
      expect(storage).toBeInstanceOf(SluiceThrottlerStorage);
      const first = await ask(`${url}/hello`);
      expect(first.text).toBe("hello");
      expect(first.headers).toMatchObject({ "x-ratelimit-limit": "2", "x-ratelimit-remaining": "1" });
      expect(Number(first.headers["x-ratelimit-reset"])).toBeGreaterThan(0);
      expect((await ask(`${url}/hello`)).headers["x-ratelimit-remaining"]).toBe("0");
      const refused = await ask(`${url}/hello`);
      expect(refused.status).toBe(429);
      expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
      expect((await ask(`${url}/free`)).status).toBe(200);
    }
  });

  it("refuses a ttl above ten years when the app starts", async () => {
    const throttlers = [{ ttl: 3654 * 24 * 3_600_000, limit: 1 }];
    for (const module of [ThrottlerModule.forRoot(throttlers), ThrottlerModule.forRoot({ throttlers })]) {
      await expect(start(module)).rejects.toThrow(/^ttl must be at most 3653 days/);
    }
  });

  it("leaves a storage that the app chose in place", async () => {
    const storage = new SluiceThrottlerStorage();
    const options: ThrottlerModuleOptions = { throttlers: [{ ttl: 60_000, limit: 2 }], storage };
    expect((await start(ThrottlerModule.forRoot(options))).storage).toBe(storage);
    expect((await start(ThrottlerModule.forRootAsync({ useFactory: () => options }))).storage).toBe(storage);
  });

  describe("on a real server", () => {
    let server: TestServer;
    beforeAll(async () => {
      server = await startServer({ flavor: "valkey" });
    });
    afterAll(() => server.close());
    const open = async (url = server.url): Promise<RedisCounters> => {
      const counters = new RedisCounters({ servers: url, deadlineMs: 2000 });
      running.push(() => counters.close());
      await counters.connected();
      return counters;
    };

    it("two apps let in together exactly what the limit allows", async () => {
      const throttlers = [{ ttl: longMs, limit: 20 }];
      const urls: string[] = [];
      for (let i = 0; i < 2; i++) {
        const storage = new SluiceThrottlerStorage({ counters: await open(), prefix: "shared" });
        urls.push((await start(ThrottlerModule.forRoot({ throttlers, storage }))).url);
      }
      const statuses = await readStatuses(Array.from({ length: 50 }, (_, i) => ask(`${urls[i % 2]}/hello`)));
      expect(statuses.filter((status) => status === 200)).toHaveLength(20);
      expect(statuses.filter((status) => status === 429)).toHaveLength(30);
    });

    it("lets exactly the limit of a crowd pass, and nothing during its block, even one shorter than the ttl", async () => {
      const prefix = `crowd ${throttler.version}`;
      const storages = [
        new SluiceThrottlerStorage({ counters: await open(), prefix }),
        new SluiceThrottlerStorage({ counters: await open(), prefix }),
      ];
      const crowd = async (): Promise<number> => {
        const asked = Array.from({ length: 60 }, (_, i) =>
          storages[i % 2]!.increment("ada", 86_400_000, 20, 3_600_000, "default"),
        );
        return (await Promise.all(asked)).filter(({ isBlocked }) => !isBlocked).length;
      };
      expect([await crowd(), await crowd()]).toEqual([20, 0]);
      expect(await storages[0]!.increment("ada", 86_400_000, 20, 3_600_000, "default")).toMatchObject({
        isBlocked: true,
        totalHits: 21,
      });
    });

    it("keeps prefixes and throttlers apart, and needs a prefix there", async () => {
      const counters = await open();
      expect(() => new SluiceThrottlerStorage({ counters })).toThrow(/prefix/);
      const storages = ["a", "a:b", "a b", "ä"].map((prefix) => new SluiceThrottlerStorage({ counters, prefix }));
      for (const storage of storages) {
        for (const name of ["short", "long"]) {
          expect(await storage.increment("ada", longMs, 5, 0, name)).toMatchObject({ totalHits: 1 });
        }
      }
    });

    it("leaves no key there without an end", async () => {
      const storage = new SluiceThrottlerStorage({ counters: await open(), prefix: "ends" });
      for (const block of [0, 30_000]) {
        for (let i = 0; i < 3; i++) await storage.increment("ada", 60_000 + block, 1, block, "default");
      }
      const keys = (await server.command("KEYS", "*")) as string[];
      expect(keys.length).toBeGreaterThanOrEqual(2);
      for (const key of keys) expect(await server.command("PTTL", key)).toBeGreaterThan(0);
    });

    it("an app goes on without its counters, or answers 503 if configured", async () => {
      const gone = await startServer({ flavor: "valkey" });
      const counters = await open(gone.url);
      const throttlers = [{ ttl: longMs, limit: 1 }];
      const createStorage = (onFailure: "open" | "closed"): SluiceThrottlerStorage =>
        new SluiceThrottlerStorage({ counters, prefix: onFailure, onFailure, onDegraded: () => {} });
      const passes = await start(ThrottlerModule.forRoot({ throttlers, storage: createStorage("open") }));
      const refuses = await start(ThrottlerModule.forRoot({ throttlers, storage: createStorage("closed") }));
      await gone.close();
      for (let i = 0; i < 2; i++) {
        expect((await ask(`${passes.url}/hello`)).status).toBe(200);
        expect((await ask(`${refuses.url}/hello`)).status).toBe(503);
      }
    });
  });
});
