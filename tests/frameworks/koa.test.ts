import { createServer } from "node:http";
import { PassThrough, Readable } from "node:stream";
import Router from "@koa/router";
import { findTicket, type Limits, type RateLimitOptions, rateLimit, type Sent } from "@sluice/middleware/koa";
import Koa, { type Context } from "koa";
import manifest from "koa/package.json" with { type: "json" };
import { limit } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import type { RunningApp } from "./framework-under-test.ts";
import { ask } from "./http-exchange.ts";
import { leaveDuringAnswer } from "./leave-early.ts";
import { listenOnLoopback } from "./listen-on-loopback.ts";
import { describeMiddleware } from "./middleware-contract.ts";

function createApp(): Koa {
  const app = new Koa();
  // Quiet: the tests of broken handlers would print their errors.
  app.silent = true;
  return app;
}

const listen = (app: Koa): Promise<RunningApp> => listenOnLoopback(createServer(app.callback()));

async function handle(ctx: Context): Promise<void> {
  const { path } = ctx;
  if (path === "/hello") ctx.body = "hello";
  else if (path.startsWith("/items/")) ctx.body = decodeURIComponent(path.slice("/items/".length));
  else if (path === "/broken") throw new Error("broken");
  else if (path === "/echo") ctx.body = ctx.req;
  else if (path === "/stream") ctx.body = Readable.from(["x", "x", "x"].map((x) => x.repeat(1000)));
  else if (path === "/charged") {
    const ticket = findTicket(ctx)!;
    await ticket.charge(5);
    ctx.body = String(ticket.decision.remaining);
  }
}

describeMiddleware({
  name: `Koa ${manifest.version}`,
  knowsRoutes: false,
  header: (name) => (ctx: Context) => ctx.get(name) || undefined,
  start: async (limits, options) => {
    const app = createApp();
    app.use(rateLimit(limits, options));
    app.use(handle);
    return listen(app);
  },
});

const soon = { timeout: 30_000, interval: 20 };
const running: RunningApp[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.close();
});

async function start(app: Koa): Promise<string> {
  const one = await listen(app);
  running.push(one);
  return one.url;
}

function startLimited(app: Koa, limits: Limits, options?: RateLimitOptions<Context>): Promise<string> {
  app.use(rateLimit(limits, options));
  app.use(handle);
  return start(app);
}

describe("Koa: header fields", () => {
  it("survive errors of every kind, which Koa answers without those that were set", async () => {
    const app = createApp();
    app.use(async (ctx, next) => {
      await next();
      if (ctx.path === "/after") throw new Error("in middleware before ours, after ours");
    });
    app.use(rateLimit("9/h"));
    app.use((ctx) => {
      ctx.set("x-own", "lost");
      if (ctx.path === "/thrown") ctx.throw(418, { headers: { "x-of-error": "kept" } });
      if (ctx.path === "/text") throw "not even an error";
    });
    const url = await start(app);
    const thrown = await ask(`${url}/thrown`);
    expect(thrown).toMatchObject({ status: 418, headers: { "x-ratelimit-remaining": "8", "x-of-error": "kept" } });
    // All other fields go, as ever.
    expect(thrown.headers["x-own"]).toBeUndefined();
    expect(await ask(`${url}/after`)).toMatchObject({ status: 500, headers: { "x-ratelimit-remaining": "7" } });
    expect(await ask(`${url}/text`)).toMatchObject({ status: 500, headers: { "x-ratelimit-remaining": "6" } });
  });

  it("are the last limit's, with several behind one another", async () => {
    const app = createApp();
    app.use(rateLimit("9/h"));
    const url = await startLimited(app, "5/h", { name: "inner" });
    for (const path of ["/hello", "/broken"]) {
      expect((await ask(url + path)).headers["ratelimit-policy"]).toMatch(/^"inner\//);
    }
  });
});

describe("Koa: refusing", () => {
  it("leaves the answer to Koa, so that middleware before it can add to it", async () => {
    const app = createApp();
    const seen: unknown[] = [];
    app.use(async (ctx, next) => {
      await next();
      seen.push(ctx.status);
      ctx.set("x-took", "a while");
    });
    const url = await startLimited(app, "1/h");
    await ask(`${url}/hello`);
    const refused = await ask(`${url}/hello`);
    expect(refused.headers["x-took"]).toBe("a while");
    expect(refused.headers["content-length"]).toBe(String(Buffer.byteLength(refused.text)));
    expect(seen).toEqual([200, 429]);
  });
});

describe("Koa: the endpoint", () => {
  it("is a route's pattern, inside of a router", async () => {
    const app = createApp();
    const byEndpoint = rateLimit(limit("1/h").by("endpoint"));
    const router = new Router({ prefix: "/v1" });
    router.get("/at-route/:id", byEndpoint, handleNothing);
    router.get("/passing/:id", byEndpoint, (_ctx, next) => next());
    router.get("/passing/on", byEndpoint, handleNothing);
    const below = new Router({ prefix: "/v2" });
    below.use(byEndpoint);
    below.get("/below/:id", handleNothing);
    below.get("/below/:id/more", handleNothing);
    app.use(router.routes());
    app.use(below.routes());
    const url = await start(app);
    for (const path of ["/v1/at-route", "/v2/below"]) {
      expect((await ask(`${url}${path}/1`)).status).toBe(200);
      expect((await ask(`${url}${path}/2`)).status).toBe(429);
    }
    // Both routes run, and each is counted as itself.
    expect((await ask(`${url}/v1/passing/on`)).status).toBe(200);
    expect((await ask(`${url}/v2/below/2/more`)).status).toBe(200);
    expect((await ask(`${url}/v2/below/3/more`)).status).toBe(429);
  });
});

function handleNothing(ctx: { body: unknown }): void {
  ctx.body = "";
}

describe("Koa: whose address", () => {
  const forwarded = (address: string): object => ({ headers: { "x-forwarded-for": address } });

  it("is the connection's, whatever Koa trusts, with a warning", async () => {
    const codes: unknown[] = [];
    const listener = (warning: Error): void => void codes.push((warning as NodeJS.ErrnoException).code);
    process.on("warning", listener);
    const app = createApp();
    app.proxy = true;
    const url = await startLimited(app, "1/h");
    expect((await ask(`${url}/hello`, forwarded("192.0.2.1"))).status).toBe(200);
    expect((await ask(`${url}/hello`, forwarded("192.0.2.2"))).status).toBe(429);
    await expect.poll(() => codes, soon).toContain("SLUICE_PROXY_NOT_BELIEVED");
    process.off("warning", listener);
  });

  it("is Koa's if Koa knows the number of proxies, and ours if the options do", async () => {
    const counting = createApp();
    counting.proxy = true;
    counting.maxIpsCount = 1;
    const believing = createApp();
    believing.proxy = true;
    const urls = [await startLimited(counting, "1/h"), await startLimited(believing, "1/h", { trustedProxies: 1 })];
    for (const url of urls) {
      expect((await ask(`${url}/hello`, forwarded("192.0.2.1"))).status).toBe(200);
      expect((await ask(`${url}/hello`, forwarded("192.0.2.2"))).status).toBe(200);
      expect((await ask(`${url}/hello`, forwarded("198.51.100.7, 192.0.2.1"))).status).toBe(429);
    }
  });
});

describe("Koa: charging", () => {
  it("charges a client that leaves in the middle once", async () => {
    const charged: Sent[] = [];
    const app = createApp();
    app.use(rateLimit("9/h", { charge: (_ctx, sent) => void charged.push(sent) }));
    app.use(async (ctx, next) => {
      if (ctx.path !== "/endless") return next();
      const stream = new PassThrough();
      stream.write("x".repeat(1000));
      ctx.body = stream;
      return undefined;
    });
    app.use(handle);
    const url = await start(app);
    await leaveDuringAnswer(`${url}/endless`);
    await expect.poll(() => charged, soon).toEqual([{ status: 200, bytes: 1000 }]);
    await ask(`${url}/hello`);
    await expect.poll(() => charged, soon).toHaveLength(2);
  });
});
