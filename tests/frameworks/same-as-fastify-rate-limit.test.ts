import theirPlugin, { type FastifyRateLimitStore, type RateLimitPluginOptions } from "@fastify/rate-limit";
import ourPlugin from "@sluice/middleware/fastify-rate-limit";
import { RedisCounters } from "@sluice/redis";
import { startServer } from "@sluice/test-servers";
import * as fc from "fast-check";
import Fastify, { type FastifyInstance, type FastifyPluginAsync } from "fastify";
import { type CounterStore, ManualClock, MemoryCounters } from "sluice";
import { afterEach, describe, expect, it, vi } from "vitest";

/** Whole seconds throughout, because headers have whole seconds. */
const windowSec = 10;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closing.splice(0).reverse()) await close();
});

type Options = RateLimitPluginOptions & { readonly counters?: CounterStore; readonly onDegraded?: () => void };

/** `events` collects the calls of the plugin's callbacks. */
async function serve(plugin: unknown, options: Options, events: unknown[] = []): Promise<FastifyInstance> {
  const app = Fastify();
  closing.push(() => app.close());
  await app.register(plugin as FastifyPluginAsync<Options>, {
    timeWindow: windowSec * 1000,
    keyGenerator: (request) => String(request.headers["x-key"]),
    allowList: ["free"],
    onExceeding: (_request, key) => void events.push(`exceeding ${key}`),
    onExceeded: (_request, key) => void events.push(`exceeded ${key}`),
    onBanReach: (_request, key) => void events.push(`banned ${key}`),
    ...options,
  });
  app.get("/", async () => "hello");
  app.get("/own", { config: { rateLimit: { max: 1 } } }, async () => "own");
  app.get("/grouped", { config: { rateLimit: { max: 2, groupId: "group" } } }, async () => "grouped");
  return app;
}

async function ask(app: FastifyInstance, url: string, key: string): Promise<{ answer: unknown; resetSec: number }> {
  const { statusCode, headers, body } = await app.inject({ url, headers: { "x-key": key } });
  const ofLimits = Object.entries(headers).filter(([name]) => /ratelimit|retry-after/.test(name));
  const resetSec = Number(headers["x-ratelimit-reset"] ?? headers["ratelimit-reset"] ?? 0);
  return { answer: { statusCode, body, headers: Object.fromEntries(ofLimits) }, resetSec };
}

const step = fc.record({
  waitSec: fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 12 }) },
  ),
  key: fc.constantFrom("a", "a", "a", "b", "free"),
  url: fc.constantFrom("/", "/", "/", "/own", "/grouped"),
});

describe("@fastify/rate-limit: theirs and ours in the same conversation", () => {
  it("answers alike: statuses, headers, bodies, callbacks, bans, and windows that are renewed", async () => {
    const settings = fc.record({
      max: fc.integer({ min: 1, max: 4 }),
      ban: fc.constantFrom(-1, 0, 2),
      continueExceeding: fc.boolean(),
      enableDraftSpec: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(settings, fc.array(step, { maxLength: 25 }), async (given, steps) => {
        const clock = new ManualClock();
        vi.useFakeTimers({ toFake: ["Date"], now: clock.epochMs() });
        const advance = (sec: number): void => {
          clock.advance(sec * 1000);
          vi.setSystemTime(Date.now() + sec * 1000);
        };
        const events: [unknown[], unknown[]] = [[], []];
        const apps = [
          await serve(theirPlugin, given, events[0]),
          await serve(ourPlugin, { ...given, counters: new MemoryCounters({ clock }), nameSpace: "same" }, events[1]),
        ] as const;
        const endsAtMs = new Map<string, number>();
        for (const { waitSec, key, url } of steps) {
          advance(waitSec);
          // Ours count in windows that begin at multiples of their length; theirs begin with the first hit.
          const name = `${url} ${key}`;
          if ((endsAtMs.get(name) ?? 0) <= clock.epochMs()) {
            advance((windowSec - ((clock.epochMs() / 1000) % windowSec)) % windowSec);
          }
          const their = await ask(apps[0], url, key);
          const our = await ask(apps[1], url, key);
          expect(our.answer, JSON.stringify({ key, url, ...given })).toEqual(their.answer);
          endsAtMs.set(name, clock.epochMs() + their.resetSec * 1000);
        }
        expect(events[1]).toEqual(events[0]);
        for (const close of closing.splice(0)) await close();
      }),
      {
        numRuns: 25,
        // A block that outlasted its window began the count of denials anew, and with it the way to a ban.
        examples: [
          [
            { max: 1, ban: 2, continueExceeding: true, enableDraftSpec: false },
            [
              { waitSec: 0, key: "a", url: "/" },
              { waitSec: 0, key: "a", url: "/" },
              { waitSec: 1, key: "a", url: "/" },
              { waitSec: 1, key: "a", url: "/grouped" },
              { waitSec: 0, key: "a", url: "/" },
            ],
          ],
        ],
      },
    );
  });

  it("does with a store that fails what skipOnError says, as theirs does", async () => {
    const gone = await startServer({ flavor: "valkey" });
    const counters = new RedisCounters({ servers: gone.url, deadlineMs: 200 });
    closing.push(() => counters.close());
    await counters.connected();
    await gone.close();
    class Failing implements FastifyRateLimitStore {
      incr(_key: string, callback: (error: Error | null) => void): void {
        callback(new Error("no store"));
      }

      child(): Failing {
        return this;
      }
    }
    const status = (answer: unknown): number => (answer as { statusCode: number }).statusCode;
    for (const skipOnError of [false, true]) {
      const their = await serve(theirPlugin, { max: 1, skipOnError, store: Failing });
      const our = await serve(ourPlugin, {
        max: 1,
        skipOnError,
        counters,
        nameSpace: `fails ${skipOnError}`,
        onDegraded: () => {},
      });
      for (const url of ["/", "/", "/own", "/grouped"]) {
        const [expected, { answer }] = [await ask(their, url, "a"), await ask(our, url, "a")];
        expect(status(answer)).toBe(skipOnError ? 200 : 500);
        // Of an error only the message differs.
        if (skipOnError) expect(answer).toEqual(expected.answer);
        else expect(status(answer)).toBe(status(expected.answer));
      }
    }
  });
});
