import type { AddressInfo } from "node:net";
import * as ours from "@sluice/middleware/express-rate-limit";
import ourDefault, { rateLimit, SluiceStore, type StoreOptions } from "@sluice/middleware/express-rate-limit";
import { RedisCounters } from "@sluice/redis";
import { startServer, type TestServer } from "@sluice/test-servers";
import express, { type RequestHandler } from "express";
import * as theirs from "express-rate-limit";
import { type Algorithm, type CounterStore, ManualClock, MemoryCounters } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { ask, readStatuses } from "./http-exchange.ts";

/** Its package.json cannot be read from outside. */
const version = "ipKeyGenerator" in theirs ? 8 : 7;

/** So long that no window ends during a test. */
const longMs = 20 * 24 * 60 * 60 * 1000;
const soon = { timeout: 30_000, interval: 20 };

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** `GET /` answers 200, and `GET /status/:code` with that. */
async function serve(...handlers: RequestHandler[]): Promise<string> {
  const app = express();
  app.set("env", "test");
  app.use(...handlers);
  app.get("/", (_request, response) => void response.send("hello"));
  app.get("/status/:code", (request, response) => void response.status(Number(request.params.code)).send("status"));
  app.get("/never", () => {});
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

async function statuses(url: string, times: number): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i++) seen.push((await ask(url)).status);
  return seen;
}

/** By name, so that any key can be tried. */
const byName: Partial<theirs.Options> = {
  keyGenerator: (request) => request.header("x-name") ?? "anonymous",
  windowMs: longMs,
  validate: false,
};

describe(`express-rate-limit ${version}: the import`, () => {
  it("has everything that theirs has, and rateLimit with our store", async () => {
    expect(Object.keys(ours)).toEqual(expect.arrayContaining([...Object.keys(theirs), "SluiceStore"]));
    expect(ourDefault).toBe(rateLimit);
    expect(rateLimit).not.toBe(theirs.rateLimit);
    const url = await serve(ourDefault({ limit: 2, windowMs: longMs, standardHeaders: "draft-7" }));
    const { headers } = await ask(url);
    expect(headers["x-ratelimit-limit"]).toBe("2");
    expect(headers["x-ratelimit-remaining"]).toBe("1");
    expect(headers["ratelimit-policy"]).toBe(`2;w=${longMs / 1000}`);
    expect(await statuses(url, 2)).toEqual([200, 429]);
    const refused = await ask(url);
    expect(refused.text).toBe("Too many requests, please try again later.");
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  });

  it("is tested with both majors", () => {
    expect(version).toBe(inject("majors") === "oldest" ? 7 : 8);
  });

  it("leaves a store of another's alone", async () => {
    const store = new theirs.MemoryStore();
    closing.push(() => store.shutdown());
    const limiter = rateLimit({ store, limit: 1, windowMs: 60_000 });
    const url = await serve(limiter);
    expect(await statuses(url, 2)).toEqual([200, 429]);
    expect(await limiter.getKey("127.0.0.1")).toMatchObject({ totalHits: 2 });
  });
});

function describeStore(name: string, counters: (clock: ManualClock) => CounterStore | undefined): void {
  let nextPrefix = 0;
  const open = (algorithm?: Algorithm): SluiceStore => {
    nextPrefix += 1;
    return new SluiceStore({ counters: counters(new ManualClock()), prefix: `${version}-${nextPrefix}`, algorithm });
  };

  describe(`express-rate-limit ${version}: the store ${name}`, () => {
    it("reports hits, and beyond the limit how many it refused in a row, for which nothing is charged", async () => {
      const store = open();
      const limiter = theirs.rateLimit({ ...byName, store, limit: 2 });
      const url = await serve(limiter);
      expect(await statuses(url, 4)).toEqual([200, 200, 429, 429]);
      expect(await limiter.getKey("anonymous")).toMatchObject({ totalHits: 2, resetTime: expect.any(Date) });
      expect(await limiter.getKey("other")).toBeUndefined();
      expect(await store.increment("anonymous")).toMatchObject({ totalHits: 5 });
      await store.decrement("anonymous");
      expect(await statuses(url, 2)).toEqual([200, 429]);
      expect(await store.increment("anonymous")).toMatchObject({ totalHits: 4 });
      await limiter.resetKey("anonymous");
      expect(await statuses(url, 3)).toEqual([200, 200, 429]);
    });

    it("gives back no more than there was", async () => {
      const store = open();
      const url = await serve(theirs.rateLimit({ ...byName, store, limit: 1 }));
      for (let i = 0; i < 3; i++) await store.decrement("anonymous");
      expect(await statuses(url, 2)).toEqual([200, 429]);
    });

    it("refuses everything if the limit is 0, and nothing if it is infinite", async () => {
      const none = await serve(theirs.rateLimit({ ...byName, store: open(), limit: 0 }));
      expect(await statuses(none, 2)).toEqual([429, 429]);
      for (const limit of [Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER]) {
        const all = await serve(theirs.rateLimit({ ...byName, store: open(), limit }));
        expect(await statuses(all, 3)).toEqual([200, 200, 200]);
      }
    });

    it("counts keys of any length and any characters apart", async () => {
      const store = open();
      rateLimit({ ...byName, store, limit: 1 });
      const long = "x".repeat(100_000);
      const keys = [
        "",
        " ",
        "a|b",
        "a\\|b",
        "\ud800",
        "\ud801",
        "\0",
        "ключ",
        `${long}1`,
        `${long}2`,
        "a:b",
        "__proto__",
      ];
      for (const key of keys) {
        expect([key.slice(0, 20), await store.increment(key)]).toMatchObject([key.slice(0, 20), { totalHits: 1 }]);
      }
      for (const key of keys) expect(await store.increment(key)).toMatchObject({ totalHits: 2 });
    });

    it("lets a key choose no other key's counter by writing its hash", async () => {
      const store = open();
      rateLimit({ ...byName, store, limit: 5 });
      const { createHash } = await import("node:crypto");
      const long = "victim".repeat(1000);
      await store.increment(long);
      const forged = `sha256:${createHash("sha256").update(long, "utf16le").digest("hex")}`;
      expect(await store.increment(forged)).toMatchObject({ totalHits: 1 });
    });

    it("evaluates a limit that is a function before it counts, so that refused hits are not charged", async () => {
      const store = open();
      const asked: string[] = [];
      const limiter = rateLimit({
        ...byName,
        store,
        limit: async (request) => {
          asked.push(request.url);
          return request.url === "/?premium" ? 4 : 2;
        },
      });
      const url = await serve(limiter);
      expect(await statuses(url, 4)).toEqual([200, 200, 429, 429]);
      expect(asked).toHaveLength(4);
      // The key keeps its usage, and has two left of its higher limit.
      expect((await ask(`${url}/?premium`)).headers["x-ratelimit-remaining"]).toBe("1");
      expect(await statuses(`${url}/?premium`, 2)).toEqual([200, 429]);
      expect(await limiter.getKey("anonymous")).toMatchObject({ totalHits: 4 });
    });

    it("counts every hit for a limit that is a function, if rateLimit is the original, which does not pass it on", async () => {
      const limiter = theirs.rateLimit({ ...byName, store: open(), limit: () => 2 });
      const url = await serve(limiter);
      expect(await statuses(url, 4)).toEqual([200, 200, 429, 429]);
      expect(await limiter.getKey("anonymous")).toMatchObject({ totalHits: 4 });
    });

    it.each([
      ["ours", rateLimit],
      ["theirs", theirs.rateLimit],
    ])("takes failed requests back, and refused ones only once, by %s", async (_whose, make) => {
      const limiter = make({ ...byName, store: open(), limit: 2, skipFailedRequests: true });
      const url = await serve(limiter);
      const used = async (): Promise<number> => (await limiter.getKey("anonymous"))?.totalHits ?? 0;
      expect(await statuses(`${url}/status/500`, 2)).toEqual([500, 500]);
      await expect.poll(used, soon).toBe(0);
      expect(await statuses(url, 2)).toEqual([200, 200]);
      // Each of these is refused, and a refusal is a failure.
      expect(await readStatuses(Array.from({ length: 10 }, () => ask(url)))).toEqual(Array(10).fill(429));
      await expect.poll(used, soon).toBe(2);
      expect(await statuses(url, 1)).toEqual([429]);
    });

    it("takes successful requests back", async () => {
      const limiter = rateLimit({ ...byName, store: open(), limit: 2, skipSuccessfulRequests: true });
      const url = await serve(limiter);
      const used = async (): Promise<number> => (await limiter.getKey("anonymous"))?.totalHits ?? 0;
      for (let i = 0; i < 4; i++) {
        expect(await statuses(url, 1)).toEqual([200]);
        await expect.poll(used, soon).toBe(0);
      }
      expect(await statuses(`${url}/status/401`, 3)).toEqual([401, 401, 429]);
      expect(await used()).toBe(2);
    });

    it("takes a request back whose client left", async () => {
      const limiter = rateLimit({ ...byName, store: open(), limit: 2, skipFailedRequests: true });
      const url = await serve(limiter);
      const used = async (): Promise<number> => (await limiter.getKey("anonymous"))?.totalHits ?? 0;
      const leaving = new AbortController();
      const left = fetch(`${url}/never`, { signal: leaving.signal }).catch(() => "left");
      await expect.poll(used, soon).toBe(1);
      leaving.abort();
      expect(await left).toBe("left");
      await expect.poll(used, soon).toBe(0);
    });

    it("takes a request back whose client left before it was counted", async () => {
      let counted = false;
      const limiter = rateLimit({
        ...byName,
        store: open(),
        limit: 1,
        skipFailedRequests: true,
        keyGenerator: async (request, response) => {
          if (request.url !== "/never") return "anonymous";
          leaving.abort();
          if (!response.closed) await new Promise((resolve) => response.once("close", resolve));
          counted = true;
          return "anonymous";
        },
      });
      const url = await serve(limiter);
      const leaving = new AbortController();
      await fetch(`${url}/never`, { signal: leaving.signal }).catch(() => "left");
      await expect.poll(() => counted, soon).toBe(true);
      await new Promise((resolve) => setImmediate(resolve));
      await expect.poll(async () => (await ask(url)).status, soon).toBe(200);
      expect((await ask(url)).status).toBe(429);
    });

    it("counts by another algorithm, and says what that cannot be combined with", async () => {
      const url = await serve(rateLimit({ ...byName, store: open("gcra"), limit: 2 }));
      expect(await statuses(url, 3)).toEqual([200, 200, 429]);
      const options = { ...byName, limit: 2, skipFailedRequests: true };
      expect(await statuses(await serve(rateLimit({ ...options, store: open("gcra") })), 3)).toEqual([200, 200, 429]);
      const bare = open("gcra");
      expect(() => bare.init({ ...options, keyGenerator: () => "" } as unknown as theirs.Options)).toThrow(/algorithm/);
    });
  });
}

describeStore("in memory", () => undefined);
describeStore("in memory that it was given", (clock) => new MemoryCounters({ clock }));

describe(`express-rate-limit ${version}: time and memory`, () => {
  it("knows windows to the millisecond, from one multiple of their length to the next", async () => {
    for (const windowMs of [500, 1900]) {
      const clock = new ManualClock();
      const begunMs = clock.epochMs() % windowMs;
      const store = new SluiceStore({ counters: new MemoryCounters({ clock }) });
      rateLimit({ ...byName, store, windowMs, limit: 1 });
      expect(await store.increment("a")).toMatchObject({ totalHits: 1 });
      clock.advance(windowMs - begunMs - 1);
      expect(await store.increment("a")).toMatchObject({ totalHits: 2 });
      clock.advance(1);
      expect(await store.increment("a")).toMatchObject({ totalHits: 1 });
      clock.advance(windowMs - 1);
      expect(await store.increment("a")).toMatchObject({ totalHits: 2 });
      clock.advance(1);
      expect(await store.increment("a")).toMatchObject({ totalHits: 1 });
    }
  });

  it("forgets all keys in its own memory, and cannot if counters are shared", async () => {
    const store = new SluiceStore();
    rateLimit({ ...byName, store, limit: 1 });
    await store.increment("a");
    store.resetAll?.();
    expect(await store.increment("a")).toMatchObject({ totalHits: 1 });
    expect(new SluiceStore({ counters: new MemoryCounters() }).resetAll).toBeUndefined();
  });

  it("is distinguished from other stores in express-rate-limit's own checks", async () => {
    const errors: unknown[] = [];
    const logger = { error: (error: unknown) => errors.push(error), warn: () => {} };
    const common = { windowMs: longMs, limit: 5, logger } as Partial<theirs.Options>;
    const url = await serve(rateLimit(common), rateLimit({ ...common, windowMs: longMs / 2 }));
    expect(await statuses(url, 2)).toEqual([200, 200]);
    expect(errors).toEqual([]);
  });

  it("reports mistakes in its setup", () => {
    const tenYearsMs = 3653 * 24 * 60 * 60 * 1000;
    expect(() => rateLimit({ ...byName, windowMs: tenYearsMs + 1 })).toThrow(/^windowMs must be at most 3653 days/);
    const shared = { local: false } as CounterStore;
    expect(() => new SluiceStore({ counters: shared })).toThrow(/^prefix is required/);
    expect(() => new SluiceStore().increment("a")).toThrow(/is not used by any rateLimit yet/);
  });
});

describe(`express-rate-limit ${version}: on a real server`, () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
  });
  afterAll(() => server.close());
  const open = async (): Promise<RedisCounters> => {
    const counters = new RedisCounters({ servers: server.url, deadlineMs: 5000 });
    closing.push(() => counters.close());
    await counters.connected();
    return counters;
  };

  it("two apps let in together exactly what the limit allows", async () => {
    const prefix = `two apps ${version}`;
    const urls = [
      await serve(rateLimit({ ...byName, limit: 20, store: new SluiceStore({ counters: await open(), prefix }) })),
      await serve(rateLimit({ ...byName, limit: 20, store: new SluiceStore({ counters: await open(), prefix }) })),
    ];
    const seen = await readStatuses(Array.from({ length: 50 }, (_, i) => ask(urls[i % 2]!)));
    expect(seen.filter((status) => status === 200)).toHaveLength(20);
    expect(seen.filter((status) => status === 429)).toHaveLength(30);
  });

  it("keeps prefixes apart, takes back, resets and counts by functions there as well", async () => {
    const counters = await open();
    const store = (prefix: string): SluiceStore => new SluiceStore({ counters, prefix: `${version} ${prefix}` });
    const one = rateLimit({ ...byName, limit: () => 2, store: store("one"), skipFailedRequests: true });
    const other = rateLimit({ ...byName, limit: 2, store: store("other") });
    const urls = [await serve(one), await serve(other)] as const;
    expect(await statuses(urls[0], 3)).toEqual([200, 200, 429]);
    expect(await statuses(urls[1], 3)).toEqual([200, 200, 429]);
    const used = async (): Promise<number> => (await one.getKey("anonymous"))?.totalHits ?? 0;
    await expect.poll(used, soon).toBe(2);
    await one.resetKey("anonymous");
    expect(await statuses(`${urls[0]}/status/500`, 1)).toEqual([500]);
    await expect.poll(used, soon).toBe(0);
    expect(await statuses(urls[0], 3)).toEqual([200, 200, 429]);
    expect(await statuses(urls[1], 1)).toEqual([429]);
  });

  it("warns if two stores of a process share counters", async () => {
    const warned: string[] = [];
    const listen = (warning: Error & { code?: string }): void => void warned.push(String(warning.code));
    process.on("warning", listen);
    closing.push(() => process.off("warning", listen));
    const counters = await open();
    const first = new SluiceStore({ counters, prefix: "same" });
    first.shutdown();
    new SluiceStore({ counters, prefix: "same" });
    new SluiceStore({ counters, prefix: "another" });
    await new Promise((resolve) => setImmediate(resolve));
    expect(warned).toEqual([]);
    new SluiceStore({ counters, prefix: "same" });
    await expect.poll(() => warned, soon).toEqual(["SLUICE_SHARED_COUNTERS"]);
  });

  it("obeys passOnStoreError while its counters are unavailable", async () => {
    const gone = await startServer({ flavor: "valkey" });
    const counters = new RedisCounters({ servers: gone.url, deadlineMs: 200 });
    closing.push(() => counters.close());
    await counters.connected();
    const store = (prefix: string, onFailure?: StoreOptions["onFailure"]): SluiceStore =>
      new SluiceStore({ counters, prefix, onFailure, onDegraded: () => {} });
    const limited = (passOnStoreError: boolean, more: Partial<theirs.Options>): Promise<string> =>
      serve(rateLimit({ ...byName, limit: 1, passOnStoreError, ...more }));
    const erring = await limited(false, { store: store("erring") });
    const erringByFunction = await limited(false, {
      store: store("by function"),
      limit: () => 1,
      skipFailedRequests: true,
    });
    // It logs the errors that it ignores.
    closing.push(vi.spyOn(console, "error").mockImplementation(() => {}).mockRestore);
    const passing = await limited(true, { store: store("passing") });
    const closed = await limited(false, { store: store("closed", "closed") });
    await gone.close();
    expect(await statuses(erring, 2)).toEqual([500, 500]);
    expect(await statuses(erringByFunction, 2)).toEqual([500, 500]);
    expect(await statuses(passing, 2)).toEqual([200, 200]);
    expect(await statuses(closed, 2)).toEqual([503, 503]);
    for (const [passOnStoreError, onFailure] of [
      [false, "open"],
      [true, "closed"],
    ] as const) {
      expect(() => rateLimit({ passOnStoreError, store: store("contradiction", onFailure) })).toThrow(
        `passOnStoreError ${passOnStoreError} contradicts onFailure ${onFailure} of the store`,
      );
    }
  });

  it("passes without its counters and warns, or answers 503 if it fails closed", async () => {
    const gone = await startServer({ flavor: "valkey" });
    const counters = new RedisCounters({ servers: gone.url, deadlineMs: 200 });
    closing.push(() => counters.close());
    await counters.connected();
    const reasons: string[] = [];
    const onDegraded = (reason: string): void => void reasons.push(reason);
    const limiter = rateLimit({
      ...byName,
      limit: 1,
      skipFailedRequests: true,
      store: new SluiceStore({ counters, prefix: "open", onDegraded }),
    });
    const open = await serve(limiter);
    const closed = await serve(
      rateLimit({
        ...byName,
        limit: 1,
        store: new SluiceStore({ counters, prefix: "closed", onFailure: "closed", onDegraded }),
      }),
    );
    const local = await serve(
      rateLimit({
        ...byName,
        limit: 2,
        store: new SluiceStore({ counters, prefix: "local", onFailure: "local", onDegraded }),
      }),
    );
    await gone.close();
    expect(await statuses(`${open}/status/500`, 2)).toEqual([500, 500]);
    expect(await statuses(open, 3)).toEqual([200, 200, 200]);
    expect(await statuses(closed, 2)).toEqual([503, 503]);
    expect(await statuses(local, 2)).toEqual([200, 429]);
    await limiter.resetKey("anonymous");
    expect(reasons.length).toBeGreaterThanOrEqual(9);
  });
});
