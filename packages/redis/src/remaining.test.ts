import { flavors, startServer } from "@sluice/test-servers";
import fc from "fast-check";
import { type CheckRequest, type CounterStore, createLimiter, type ManualClock, MemoryCounters } from "sluice";
import { describe, expect, it } from "vitest";
import { RedisCounters } from "./redis-counters.ts";
import { scriptsOnTestTime, testTime } from "./testing/scripts-on-test-time.ts";

/**
 * What `remaining` promises, over every window of every limit of a request: a cost of `remaining` passes now, one more does not.
 */

const maxCost = 100_000;

const algorithm = fc.constantFrom(
  "gcra",
  "token_bucket",
  "leaky_bucket",
  "fixed_window",
  "sliding_window",
  "sliding_log",
);

const size = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 200_000 }));

/** One to three windows of different lengths, as a policy writes them. */
const windows = fc
  .uniqueArray(fc.record({ limit: size, per: fc.constantFrom("s", "7s", "m", "h", "d") }), {
    minLength: 1,
    maxLength: 3,
    selector: ({ per }) => per,
  })
  .map((list) => list.map(({ limit, per }) => `${limit}/${per}`));

const limits = fc
  .array(fc.record({ algorithm, windows, by: fc.constantFrom("user", "tenant", "ip") }), { minLength: 1, maxLength: 4 })
  .map((list) => list.map(({ by, ...limit }, i) => ({ ...limit, name: `limit-${i}`, by: [by] })));

const blockFor = fc.constantFrom(undefined, undefined, undefined, "9s");

const step = fc.record({
  waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 0, max: 200_000 })),
  cost: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: maxCost })),
});

let conversations = 0;

/** Holds every conversation with a limiter on counters that `open` gives, at a time that the test moves. */
async function holds(open: (clock: ManualClock) => CounterStore | Promise<CounterStore>, runs: number): Promise<void> {
  const clock = testTime();
  const counters = await open(clock);
  try {
    await fc.assert(
      fc.asyncProperty(
        limits,
        blockFor,
        fc.array(step, { minLength: 1, maxLength: 8 }),
        async (given, block, steps) => {
          conversations += 1;
          clock.advance(testTime().epochMs() - clock.epochMs());
          const policy = { id: `p${conversations}`, limits: given.map((limit) => ({ ...limit, block_for: block })) };
          const limiter = createLimiter({
            policies: JSON.parse(JSON.stringify({ policies: [policy], default: "none" })),
            counters,
            clock,
            previewCacheMs: 0,
          });
          const dimensions = { user: "u", tenant: "t", ip: "10.0.0.1" };
          const passes = async (cost: number): Promise<boolean> =>
            (await limiter.check({ dimensions, cost, preview: true })).allowed;
          const judge = async (request: CheckRequest): Promise<void> => {
            const { remaining } = await limiter.check({ ...request, dimensions });
            const left = remaining ?? Number.NaN;
            if (left > 0) expect(await passes(Math.min(left, maxCost)), `a cost of ${left} passes`).toBe(true);
            if (left < maxCost) expect(await passes(left + 1), `a cost of ${left + 1} does not`).toBe(false);
          };
          for (const { waitMs, cost } of steps) {
            clock.advance(waitMs);
            await judge({ cost });
            await judge({ cost, preview: true });
          }
        },
      ),
      { numRuns: runs },
    );
  } finally {
    await counters.close();
  }
}

describe("remaining", () => {
  it("is the largest cost that passes now, in memory", async () => {
    await holds((clock) => new MemoryCounters({ clock }), 1_000);
  });

  it.each(flavors)("is the largest cost that passes now, on %s", async (flavor) => {
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
