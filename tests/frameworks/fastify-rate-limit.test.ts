import theirPlugin from "@fastify/rate-limit";
import manifest from "@fastify/rate-limit/package.json" with { type: "json" };
import rateLimit, {
  fastifyRateLimit,
  type RateLimitPluginOptions,
  SluiceStore,
  sluiceStore,
} from "@sluice/middleware/fastify-rate-limit";
import { RedisCounters } from "@sluice/redis";
import { startServer, type TestServer } from "@sluice/test-servers";
import Fastify, { type FastifyInstance } from "fastify";
import { Redis } from "ioredis";
import { type CounterStore, ManualClock, MemoryCounters } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";

const { version } = manifest;

/** So long that no window ends during a test. */
const longMs = 20 * 24 * 60 * 60 * 1000;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

type Routes = (app: FastifyInstance) => unknown;

const byName: RateLimitPluginOptions = {
  timeWindow: longMs,
  keyGenerator: (request) => String(request.headers["x-name"] ?? "anonymous"),
};

async function serve(options: RateLimitPluginOptions, routes: Routes = () => {}): Promise<FastifyInstance> {
  const app = Fastify();
  closing.push(() => app.close());
  await app.register(rateLimit, { ...byName, ...options });
  app.get("/", async () => "hello");
  await routes(app);
  return app;
}

async function statuses(app: FastifyInstance, times: number, url = "/", name = "anonymous"): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i++) seen.push((await app.inject({ url, headers: { "x-name": name } })).statusCode);
  return seen;
}

interface Standing {
  readonly current: number;
  readonly ttl: number;
}

function hit(store: SluiceStore, key: string, timeWindow: number, max: number): Promise<Standing> {
  return new Promise((resolve, reject) =>
    store.incr(key, (error, result) => (error === null ? resolve(result!) : reject(error)), timeWindow, max),
  );
}

function read(store: SluiceStore, key: string, timeWindow: number, max: number): Promise<Standing> {
  return new Promise((resolve, reject) =>
    store.read(key, (error, result) => (error === null ? resolve(result!) : reject(error)), timeWindow, max),
  );
}

describe(`@fastify/rate-limit ${version}: the import`, () => {
  it("is tested with both majors", () => {
    expect(version.split(".")[0]).toBe(inject("majors") === "oldest" ? "10" : "11");
  });

  it("is a plugin under the name that it has always had, for the app that registers it and not only for itself", async () => {
    expect(fastifyRateLimit).toBe(rateLimit);
    const app = await serve({ max: 2 });
    expect(app.hasPlugin("@fastify/rate-limit")).toBe(true);
    const first = await app.inject("/");
    expect(first.headers).toMatchObject({ "x-ratelimit-limit": "2", "x-ratelimit-remaining": "1" });
    expect(await statuses(app, 3)).toEqual([200, 429, 429]);
    const refused = await app.inject("/");
    expect(refused.json()).toMatchObject({ statusCode: 429, message: expect.stringMatching(/^Rate limit exceeded/) });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  });

  it("leaves a store of another's alone", async () => {
    class Always {
      incr(_key: string, callback: (error: null, result: Standing) => void): void {
        callback(null, { current: 99, ttl: 1000 });
      }
      child(): Always {
        return this;
      }
    }
    expect(await statuses(await serve({ max: 9, store: Always }), 1)).toEqual([429]);
  });

  it("works as a store of the original plugin", async () => {
    const app = Fastify();
    closing.push(() => app.close());
    await app.register(theirPlugin, { ...byName, max: 1, store: sluiceStore({}) });
    app.get("/", async () => "hello");
    expect(await statuses(app, 2)).toEqual([200, 429]);
  });
});

describe.each([
  ["in memory", (): CounterStore | undefined => undefined],
  ["in memory that it was given", (): CounterStore => new MemoryCounters()],
] as const)(`@fastify/rate-limit ${version}: %s`, (_name, open) => {
  const place = (): Pick<RateLimitPluginOptions, "counters" | "nameSpace"> => ({ counters: open(), nameSpace: "test" });

  it("does not charge refused hits", async () => {
    let max = 2;
    const app = await serve({ ...place(), max: () => max });
    expect(await statuses(app, 5)).toEqual([200, 200, 429, 429, 429]);
    max = 4;
    expect(await statuses(app, 3)).toEqual([200, 200, 429]);
    expect(await statuses(app, 1, "/", "another")).toEqual([200]);
  });

  it("counts routes with their own limits separately, and others together", async () => {
    const app = await serve({ ...place(), max: 3 }, (routes) => {
      routes.get("/other", async () => "other");
      routes.get("/own", { config: { rateLimit: { max: 1 } } }, async () => "own");
      routes.post("/own", { config: { rateLimit: { max: 1 } } }, async () => "own");
      routes.get("/free", { config: { rateLimit: false } }, async () => "free");
    });
    expect(await statuses(app, 2)).toEqual([200, 200]);
    expect(await statuses(app, 2, "/other")).toEqual([200, 429]);
    expect(await statuses(app, 2, "/own")).toEqual([200, 429]);
    expect((await app.inject({ url: "/own", method: "POST" })).statusCode).toBe(200);
    expect(await statuses(app, 5, "/free")).toEqual([200, 200, 200, 200, 200]);
  });

  it("counts limiters apart that belong to no route", async () => {
    const app = await serve({ ...place(), max: 9, global: false }, (routes) => {
      routes.get("/a", { preHandler: routes.rateLimit({ max: 1 }) }, async () => "a");
      routes.get("/b", { preHandler: routes.rateLimit({ max: 2 }) }, async () => "b");
    });
    expect(await statuses(app, 2, "/a")).toEqual([200, 429]);
    expect(await statuses(app, 3, "/b")).toEqual([200, 200, 429]);
  });

  it("bans clients that are refused more often than allowed", async () => {
    const app = await serve({ ...place(), max: 1, ban: 2 });
    expect(await statuses(app, 5)).toEqual([200, 429, 429, 403, 403]);
    expect(await statuses(app, 2, "/", "another")).toEqual([200, 429]);
  });
});

describe(`@fastify/rate-limit ${version}: the store`, () => {
  const open = (params: object = {}): { store: SluiceStore; clock: ManualClock } => {
    const clock = new ManualClock();
    return { store: new SluiceStore(params, { counters: new MemoryCounters({ clock }) }), clock };
  };

  it("knows windows to the millisecond", async () => {
    for (const windowMs of [500, 1900]) {
      const { store, clock } = open();
      const leftMs = windowMs - (clock.epochMs() % windowMs);
      expect(await hit(store, "a", windowMs, 1)).toEqual({ current: 1, ttl: leftMs });
      clock.advance(leftMs - 1);
      expect(await hit(store, "a", windowMs, 1)).toEqual({ current: 2, ttl: 1 });
      clock.advance(1);
      expect(await hit(store, "a", windowMs, 1)).toEqual({ current: 1, ttl: windowMs });
    }
  });

  it("reads a key's state without taking anything", async () => {
    const { store } = open();
    expect(await read(store, "a", 60_000, 2)).toEqual({ current: 0, ttl: 0 });
    for (const current of [1, 2, 3]) expect(await hit(store, "a", 60_000, 2)).toMatchObject({ current });
    const standing = await read(store, "a", 60_000, 2);
    expect(standing.current).toBe(2);
    expect(standing.ttl).toBeGreaterThan(0);
  });

  it("renews the window of a client that goes on, with continueExceeding, and no other window", async () => {
    const { store, clock } = open({ continueExceeding: true });
    const windowMs = 60_000;
    await hit(store, "a", windowMs, 1);
    expect(await hit(store, "a", windowMs, 1)).toEqual({ current: 2, ttl: windowMs });
    clock.advance(windowMs - 1);
    expect(await hit(store, "a", windowMs, 1)).toMatchObject({ ttl: windowMs });
    expect(await read(store, "a", windowMs, 1)).toEqual({ current: 2, ttl: windowMs });
    clock.advance(windowMs);
    expect(await hit(store, "a", windowMs, 1)).toMatchObject({ current: 1 });
    const { store: plain, clock: time } = open();
    await hit(plain, "a", windowMs, 1);
    const { ttl } = await hit(plain, "a", windowMs, 1);
    time.advance(ttl);
    expect(await hit(plain, "a", windowMs, 1)).toMatchObject({ current: 1 });
  });

  it("backs off exponentially if configured, up to 30 days", async () => {
    const { store, clock } = open({ exponentialBackoff: true });
    await hit(store, "a", 60_000, 1);
    for (const times of [1, 2, 4, 8]) {
      expect(await hit(store, "a", 60_000, 1)).toMatchObject({ ttl: 60_000 * times });
    }
    for (let i = 0; i < 2000; i++) await hit(store, "a", 60_000, 1);
    clock.advance(30 * 24 * 60 * 60 * 1000);
    expect(await hit(store, "a", 60_000, 1)).toMatchObject({ current: 1 });
  });

  it("reports mistakes in its setup", async () => {
    const shared = { local: false } as CounterStore;
    expect(() => new SluiceStore({}, { counters: shared })).toThrow(/^prefix is required/);
    const errors: unknown[] = [];
    new SluiceStore().incr("a", (error) => errors.push(error), Number.NaN, 1);
    expect(errors).toMatchObject([{ message: expect.stringMatching(/^timeWindow must be/) }]);
    const tooLong = 3654 * 24 * 60 * 60 * 1000;
    await expect(serve({ timeWindow: tooLong })).rejects.toThrow(/^timeWindow must be at most 3653 days/);
    await expect(serve({ store: SluiceStore, algorithm: "gcra" })).rejects.toThrow(
      /^algorithm has no effect if store is given/,
    );
    for (const [skipOnError, onFailure] of [
      [false, "open"],
      [true, "closed"],
    ] as const) {
      const message = `skipOnError ${skipOnError} contradicts onFailure ${onFailure}`;
      await expect(serve({ skipOnError, onFailure })).rejects.toThrow(message);
      const routes: Routes = async (app) => {
        app.get("/own", { config: { rateLimit: { skipOnError } } }, async () => "own");
      };
      await expect(serve({ onFailure }, routes)).rejects.toThrow(message);
    }
  });
});

describe(`@fastify/rate-limit ${version}: on a real server`, () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
  });
  afterAll(() => server.close());

  it("two apps let in together exactly what the limit allows, by routes and name spaces", async () => {
    const routes: Routes = (app) => app.get("/own", { config: { rateLimit: { max: 10 } } }, async () => "own");
    const apps: FastifyInstance[] = [];
    for (const nameSpace of ["shared", "shared", "apart"]) {
      const counters = new RedisCounters({ servers: server.url, deadlineMs: 5000 });
      closing.push(() => counters.close());
      await counters.connected();
      apps.push(await serve({ counters, nameSpace: nameSpace + version, max: 20 }, routes));
    }
    for (const [url, max] of [
      ["/", 20],
      ["/own", 10],
    ] as const) {
      const seen = await Promise.all(Array.from({ length: 50 }, (_, i) => apps[i % 2]!.inject(url)));
      expect(seen.filter(({ statusCode }) => statusCode === 200)).toHaveLength(max);
      expect((await apps[2]!.inject(url)).headers["x-ratelimit-remaining"]).toBe(String(max - 1));
    }
  });

  it("counts on the server of the client in `redis`, without using or closing the client", async () => {
    const client = new Redis(server.url, { lazyConnect: true });
    closing.push(() => client.disconnect());
    await client.connect();
    const app = await serve({ redis: client, nameSpace: `client ${version}`, max: 2 });
    expect(await statuses(app, 3)).toEqual([200, 200, 429]);
    await app.close();
    expect(client.status).toBe("ready");
    const again = await serve({ redis: client, nameSpace: `client ${version}`, max: 3 });
    expect(await statuses(again, 2)).toEqual([200, 429]);
  });

  it("obeys skipOnError while its counters are unavailable, of the plugin, of routes and of limiters without one", async () => {
    const gone = await startServer({ flavor: "valkey" });
    const counters = new RedisCounters({ servers: gone.url, deadlineMs: 200 });
    closing.push(() => counters.close());
    await counters.connected();
    const routes: Routes = (app) => {
      for (const skipOnError of [true, false]) {
        app.get(`/route/${skipOnError}`, { config: { rateLimit: { max: 1, skipOnError } } }, async () => "own");
        const preHandler = app.rateLimit({ max: 1, skipOnError });
        app.get(`/handler/${skipOnError}`, { config: { rateLimit: false }, preHandler }, async () => "own");
        const check = app.createRateLimit({ max: 1, skipOnError });
        app.get(`/check/${skipOnError}`, { config: { rateLimit: false } }, async (request) => check(request));
      }
      app.get("/route", { config: { rateLimit: { max: 2 } } }, async () => "own");
    };
    const common = { counters, max: 1, onDegraded: () => {} };
    const apps = {
      absent: await serve({ ...common, nameSpace: "absent" }, routes),
      kept: await serve({ ...common, nameSpace: "kept", skipOnError: false }, routes),
      skipped: await serve({ ...common, nameSpace: "skipped", skipOnError: true }, routes),
    };
    const client = new Redis(gone.url);
    client.on("error", () => {});
    closing.push(() => client.disconnect());
    const byClient = await serve({ redis: client, skipOnError: false, max: 1 });
    await gone.close();
    for (const [name, status] of [
      ["absent", 200],
      ["kept", 500],
      ["skipped", 200],
    ] as const) {
      for (const url of ["/", "/route"]) expect(await statuses(apps[name], 2, url)).toEqual([status, status]);
      for (const kind of ["route", "handler", "check"]) {
        expect(await statuses(apps[name], 2, `/${kind}/true`)).toEqual([200, 200]);
        expect(await statuses(apps[name], 2, `/${kind}/false`)).toEqual([500, 500]);
      }
    }
    expect(await statuses(byClient, 1)).toEqual([500]);
  });

  it("passes without its counters, or answers 503 if it fails closed", async () => {
    const gone = await startServer({ flavor: "valkey" });
    const counters = new RedisCounters({ servers: gone.url, deadlineMs: 200 });
    closing.push(() => counters.close());
    await counters.connected();
    const reasons: string[] = [];
    const common = { counters, max: 1, onDegraded: (reason: string) => void reasons.push(reason) };
    const open = await serve({ ...common, nameSpace: "open", continueExceeding: true });
    const closed = await serve({ ...common, nameSpace: "closed", onFailure: "closed" });
    await gone.close();
    expect(await statuses(open, 3)).toEqual([200, 200, 200]);
    expect(await statuses(closed, 2)).toEqual([503, 503]);
    expect(reasons).toHaveLength(5);
  });
});
