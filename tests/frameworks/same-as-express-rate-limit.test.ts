import { createServer } from "node:http";
import { rateLimit, SluiceStore } from "@sluice/middleware/express-rate-limit";
import { RedisCounters } from "@sluice/redis";
import { startServer } from "@sluice/test-servers";
import express, { type NextFunction, type Request, type RequestHandler, type Response } from "express";
import * as theirs from "express-rate-limit";
import * as fc from "fast-check";
import { ManualClock, MemoryCounters } from "sluice";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type Answer, ask } from "./http-exchange.ts";
import { listenOnLoopback } from "./listen-on-loopback.ts";

const windowMs = 10_000;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closing.splice(0).reverse()) await close();
});

/** Answers with the status in the path, and what the limiter reported to the app. */
async function serve(limiter: RequestHandler, errors: unknown[] = []): Promise<string> {
  const app = express();
  app.use(limiter);
  app.get("/:status", (request, response) => {
    const { limit, used, remaining } = (request as Request & { rateLimit?: theirs.RateLimitInfo }).rateLimit ?? {};
    response.status(Number(request.params.status)).json({ limit, used, remaining });
  });
  app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
    errors.push(error);
    response.status(500).send("error handler");
  });
  const { url, close } = await listenOnLoopback(createServer(app));
  closing.push(close);
  return url;
}

/** What a client sees of limits. */
function seen({ status, headers, text }: Answer): unknown {
  const ofLimits = Object.entries(headers).filter(([name]) => /ratelimit|retry-after/.test(name));
  return { status, text, headers: Object.fromEntries(ofLimits) };
}

interface Step {
  readonly waitMs: number;
  readonly key: string;
  readonly status: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  waitMs: fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 12_000 }) },
  ),
  key: fc.constantFrom("a", "a", "a", "b", "free"),
  status: fc.constantFrom(200, 200, 404),
});

describe("express-rate-limit: theirs and ours in the same conversation", () => {
  it("answers alike: statuses, headers of every draft, bodies, what the app can read, and skipped requests", async () => {
    const settings = fc.record({
      limit: fc.integer({ min: 1, max: 4 }),
      isFunction: fc.boolean(),
      skips: fc.constantFrom({}, { skipFailedRequests: true }, { skipSuccessfulRequests: true }),
      standardHeaders: fc.constantFrom(false as const, "draft-6" as const, "draft-7" as const, "draft-8" as const),
      legacyHeaders: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(settings, fc.array(step, { maxLength: 20 }), async (given, steps) => {
        const { limit, isFunction, skips, standardHeaders, legacyHeaders } = given;
        const clock = new ManualClock();
        vi.useFakeTimers({ toFake: ["Date"], now: clock.epochMs() });
        const advance = (ms: number): void => {
          clock.advance(ms);
          vi.setSystemTime(Date.now() + ms);
        };
        const options: Partial<theirs.Options> = {
          windowMs,
          limit: isFunction ? () => limit : limit,
          ...skips,
          standardHeaders,
          legacyHeaders,
          skip: (request) => request.header("x-key") === "free",
          keyGenerator: (request) => String(request.header("x-key")),
          message: (request: Request) => `slow down, ${request.header("x-key")}`,
          validate: false,
        };
        const their = theirs.rateLimit(options);
        const store = new SluiceStore({ counters: new MemoryCounters({ clock }) });
        const urls = [await serve(their), await serve(rateLimit({ ...options, store }))] as const;
        for (const { waitMs, key, status } of steps) {
          advance(waitMs);
          // Ours count in windows that begin at multiples of their length; theirs begin with the first hit.
          const known = await their.getKey(key);
          if (known === undefined || known.resetTime!.getTime() <= Date.now()) {
            advance((windowMs - (clock.epochMs() % windowMs)) % windowMs);
          }
          const headers = { "x-key": key };
          const [expected, answered] = [
            seen(await ask(`${urls[0]}/${status}`, { headers })),
            seen(await ask(`${urls[1]}/${status}`, { headers })),
          ];
          expect(answered, JSON.stringify({ key, status, ...given })).toEqual(expected);
        }
        for (const close of closing.splice(0)) await close();
      }),
      { numRuns: 25 },
    );
  });

  it("lets a handler recognize the first refusal", async () => {
    const used = async (make: typeof theirs.rateLimit): Promise<unknown[]> => {
      const reported: unknown[] = [];
      const handler: theirs.RateLimitExceededEventHandler = (request, response) => {
        reported.push((request as Request & { rateLimit: theirs.RateLimitInfo }).rateLimit.used);
        response.status(429).send("slow down");
      };
      const url = await serve(make({ windowMs: 20 * 24 * 3_600_000, limit: 2, handler, validate: false }));
      for (let i = 0; i < 6; i++) await ask(`${url}/200`);
      return reported;
    };
    expect(await used(theirs.rateLimit)).toEqual([3, 4, 5, 6]);
    expect(await used(rateLimit)).toEqual([3, 4, 5, 6]);
  });

  it("does with a store that fails what passOnStoreError says, as theirs does", async () => {
    const gone = await startServer({ flavor: "valkey" });
    const counters = new RedisCounters({ servers: gone.url, deadlineMs: 200 });
    closing.push(() => counters.close());
    await counters.connected();
    await gone.close();
    const failing: theirs.Store = {
      increment: () => Promise.reject(new Error("no store")),
      decrement: () => {},
      resetKey: () => {},
    };
    for (const passOnStoreError of [false, true]) {
      const outcomes: unknown[] = [];
      for (const make of [
        (options: Partial<theirs.Options>) => theirs.rateLimit({ ...options, store: failing }),
        (options: Partial<theirs.Options>) => {
          const store = new SluiceStore({ counters, prefix: `fails ${passOnStoreError}`, onDegraded: () => {} });
          return rateLimit({ ...options, store });
        },
      ]) {
        const errors: unknown[] = [];
        const logged: unknown[] = [];
        const logger = {
          error: (error: unknown) => void logged.push(error),
          warn: () => {},
        } as unknown as theirs.Options["logger"];
        const url = await serve(make({ limit: 1, passOnStoreError, logger, validate: false }), errors);
        const answers = [seen(await ask(`${url}/200`)), seen(await ask(`${url}/200`))];
        for (const error of [...errors, ...logged]) expect(error).toBeInstanceOf(Error);
        outcomes.push({ answers, errors: errors.length, logged: logged.length });
      }
      expect(outcomes[1]).toEqual(outcomes[0]);
      expect(outcomes[1]).toMatchObject(passOnStoreError ? { errors: 0, logged: 2 } : { errors: 2, logged: 0 });
    }
  });
});
