import { flavors, startServer } from "@sluice/test-servers";
import fc from "fast-check";
import {
  type CounterStore,
  createLimiter,
  type Decision,
  type ManualClock,
  MemoryCounters,
  renderHeaders,
} from "sluice";
import { describe, expect, it } from "vitest";
import { RedisCounters } from "./redis-counters.ts";
import { scriptsOnTestTime, testTime } from "./testing/scripts-on-test-time.ts";

/**
 * What `t` of the `RateLimit` field promises on an allowance: that many seconds later the named limit has more left than `r`, and
 * before that, rounding to whole seconds aside, it has not.
 */

const algorithm = fc.constantFrom(
  "gcra",
  "token_bucket",
  "leaky_bucket",
  "fixed_window",
  "sliding_window",
  "sliding_log",
);

const size = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 200_000 }));

const windows = fc
  .uniqueArray(fc.record({ limit: size, per: fc.constantFrom("s", "7s", "m", "h", "d") }), {
    minLength: 1,
    maxLength: 3,
    selector: ({ per }) => per,
  })
  .map((list) => list.map(({ limit, per }) => `${limit}/${per}`));

const limits = fc
  .array(fc.record({ algorithm, windows, by: fc.constantFrom("user", "tenant", "ip") }), { minLength: 1, maxLength: 3 })
  .map((list) => list.map(({ by, ...limit }, i) => ({ ...limit, name: `limit-${i}`, by: [by] })));

const step = fc.record({
  waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 0, max: 200_000 })),
  cost: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 1_000 })),
  preview: fc.boolean(),
});

let conversations = 0;

async function holds(open: (clock: ManualClock) => CounterStore | Promise<CounterStore>, runs: number): Promise<void> {
  const clock = testTime();
  const counters = await open(clock);
  try {
    await fc.assert(
      fc.asyncProperty(limits, fc.array(step, { minLength: 1, maxLength: 6 }), async (given, steps) => {
        conversations += 1;
        clock.advance(testTime().epochMs() - clock.epochMs());
        const policies = { policies: [{ id: `p${conversations}`, limits: given }], default: "none" };
        const limiter = createLimiter({ policies, counters, clock, previewCacheMs: 0 });
        const dimensions = { user: "u", tenant: "t", ip: "10.0.0.1" };
        const readRemaining = async (scope: string): Promise<number> => {
          const { limits: all = [] } = await limiter.check({ dimensions, preview: true, details: true });
          return all.find((one) => one.scope === scope)!.remaining;
        };
        const judge = async (decision: Decision): Promise<void> => {
          const { scope = "", limitRemaining = Number.NaN, moreAfterMs, allowed } = decision;
          const [, r, t] = /;r=(\d+)(?:;t=(\d+))?$/.exec(renderHeaders(decision).RateLimit ?? "") ?? [];
          expect(Number(r)).toBe(limitRemaining);
          if (!allowed) return;
          // A preview of a full counter: it never grows.
          if (t === undefined || moreAfterMs === undefined) {
            expect([t, moreAfterMs, decision.preview]).toEqual([undefined, undefined, true]);
            return;
          }
          clock.advance(moreAfterMs - 1);
          expect(await readRemaining(scope), `${moreAfterMs - 1} ms later`).toBe(limitRemaining);
          clock.advance(Number(t) * 1000 - moreAfterMs + 1);
          expect(await readRemaining(scope), `${t} s later`).toBeGreaterThan(limitRemaining);
          expect(Number(t) * 1000 - moreAfterMs, "rounding").toBeLessThan(1000);
        };
        for (const { waitMs, cost, preview } of steps) {
          clock.advance(waitMs);
          await judge(await limiter.check({ dimensions, cost, preview }));
        }
      }),
      { numRuns: runs },
    );
  } finally {
    await counters.close();
  }
}

describe("t of the RateLimit field on an allowance", () => {
  it("is when more quota is available, in memory", async () => {
    await holds((clock) => new MemoryCounters({ clock }), 1_000);
  });

  it.each(flavors)("is when more quota is available, on %s", async (flavor) => {
    const server = await startServer({ flavor });
    try {
      await holds(async (clock) => {
        const store = new RedisCounters({ servers: server.url, deadlineMs: 5_000, tune: scriptsOnTestTime(clock) });
        await store.connected();
        return store;
      }, 150);
    } finally {
      await server.close();
    }
  });
});
