import { createServer } from "node:http";
import { rateLimit } from "@sluice/middleware/express";
import { rateLimit as expressRateLimit } from "@sluice/middleware/express-rate-limit";
import { rateLimit as fastifyPlugin } from "@sluice/middleware/fastify";
import fastifyRateLimit from "@sluice/middleware/fastify-rate-limit";
import { rateLimit as fetchGuard } from "@sluice/middleware/fetch";
import { SluiceThrottlerStorage } from "@sluice/middleware/nest-throttler";
import { RateLimiterMemory } from "@sluice/middleware/rate-limiter-flexible";
import express from "express";
import { fastify } from "fastify";
import { limit } from "sluice";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ask } from "./http-exchange.ts";
import { listenOnLoopback } from "./listen-on-loopback.ts";

/** Asks once, and says whether the request passed. */
type Ask = () => Promise<boolean>;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closing.splice(0)) await close();
});

async function expressApp(limiter: express.RequestHandler): Promise<Ask> {
  const app = express().use(limiter);
  app.get("/", (_request, response) => void response.send("hello"));
  const { url, close } = await listenOnLoopback(createServer(app));
  closing.push(close);
  return async () => (await ask(url)).status === 200;
}

/** Each allows one request a minute. */
const limiters: readonly (readonly [string, () => Ask | Promise<Ask>])[] = [
  [
    "a limit",
    () => {
      const perUser = limit("1/m").by("user");
      return async () => perUser.checkSync("ada").allowed;
    },
  ],
  ["the middleware for Express", () => expressApp(rateLimit("1/m"))],
  [
    "the middleware for Fastify",
    async () => {
      const app = fastify();
      await app.register(fastifyPlugin("1/m"));
      app.get("/", async () => "hello");
      closing.push(() => app.close());
      return async () => (await app.inject("/")).statusCode === 200;
    },
  ],
  [
    "the middleware for fetch handlers",
    () => {
      const limited = fetchGuard("1/m", { ip: () => "192.0.2.1", algorithm: "fixed_window" })(
        () => new Response("hello"),
      );
      return async () => (await limited(new Request("https://example.com/"))).status === 200;
    },
  ],
  [
    "express-rate-limit",
    () => expressApp(expressRateLimit({ windowMs: 60_000, limit: 1, standardHeaders: false, legacyHeaders: false })),
  ],
  [
    "@fastify/rate-limit",
    async () => {
      const app = fastify();
      await app.register(fastifyRateLimit, { max: 1, timeWindow: 60_000 });
      app.get("/", async () => "hello");
      closing.push(() => app.close());
      return async () => (await app.inject("/")).statusCode === 200;
    },
  ],
  [
    "@nestjs/throttler",
    () => {
      const storage = new SluiceThrottlerStorage();
      return async () => !(await storage.increment("ada", 60_000, 1, 0, "default")).isBlocked;
    },
  ],
  [
    "rate-limiter-flexible",
    () => {
      const limiter = new RateLimiterMemory({ points: 1, duration: 60 });
      return () =>
        limiter.consume("ada").then(
          () => true,
          () => false,
        );
    },
  ],
];

describe.each(limiters)("%s, under fake timers", (_, create) => {
  it("lets the next request in when the window has been advanced, made before the timers or after", async () => {
    const before = await create();
    // A little after fixed windows of a minute begin.
    vi.useFakeTimers({ now: 1_800_000_000_010 });
    const after = await create();
    for (const passes of [before, after]) {
      expect([await passes(), await passes()]).toEqual([true, false]);
      vi.advanceTimersByTime(59_900);
      expect(await passes()).toBe(false);
      vi.advanceTimersByTime(100);
      expect([await passes(), await passes()]).toEqual([true, false]);
    }
  });
});

describe("a limit that outlives fake timers", () => {
  it("continues from where it was: time never runs backwards, and no client is locked out", () => {
    const perUser = limit("1/m").by("user");
    const passes = (): boolean => perUser.checkSync("ada").allowed;
    vi.useFakeTimers();
    expect(passes()).toBe(true);
    vi.advanceTimersByTime(3_600_000);
    expect([passes(), passes()]).toEqual([true, false]);
    vi.useRealTimers();
    expect(passes()).toBe(false);
    vi.useFakeTimers();
    expect(passes()).toBe(false);
    vi.advanceTimersByTime(60_000);
    expect(passes()).toBe(true);
  });
});
