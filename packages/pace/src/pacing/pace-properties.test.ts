import fc from "fast-check";
import { createLimiter, ManualClock } from "sluice";
import { describe, expect, it } from "vitest";
import { ManualTime, settled } from "../testing/manual-time.ts";
import { pace } from "./pace.ts";

const traffic = fc.record({
  limit: fc.integer({ min: 1, max: 50 }),
  perMs: fc.integer({ min: 50, max: 3000 }),
  burst: fc.integer({ min: 1, max: 8 }),
  calls: fc.array(fc.record({ afterMs: fc.nat(400), cost: fc.integer({ min: 1, max: 3 }) }), {
    minLength: 1,
    maxLength: 25,
  }),
});

type Traffic = typeof traffic extends fc.Arbitrary<infer Value> ? Value : never;

interface Start {
  readonly index: number;
  readonly atMs: number;
  readonly cost: number;
}

/** The start time of each call that fits at all. */
async function play({ limit, perMs, burst, calls }: Traffic): Promise<{ starts: readonly Start[]; time: ManualTime }> {
  const time = new ManualTime();
  const paced = pace(`${limit}/${perMs}ms burst ${burst}`, { clock: time.clock, schedule: time.schedule });
  const starts: Start[] = [];
  for (const [index, { afterMs, cost }] of calls.entries()) {
    await time.advance(afterMs);
    paced(() => starts.push({ index, atMs: time.clock.nowMs(), cost }), { cost }).catch(() => undefined);
  }
  await time.advance(1e9);
  expect([paced.waiting, paced.running, time.timers]).toEqual([0, 0, 0]);
  return { starts, time };
}

/** The same by hand: each call in its order is tried every millisecond until it passes. */
function playByHand({ limit, perMs, burst, calls }: Traffic): readonly Start[] {
  const clock = new ManualClock();
  const windows = [`${limit}/${perMs}ms burst ${burst}`];
  const limiter = createLimiter({
    clock,
    policies: { policies: [{ id: "p", limits: [{ by: [], windows }], on_failure: "open" }] },
  });
  const starts: Start[] = [];
  let arrivesMs = 0;
  for (const [index, { afterMs, cost }] of calls.entries()) {
    arrivesMs += afterMs;
    if (cost > burst) continue;
    if (clock.nowMs() < arrivesMs) clock.advance(arrivesMs - clock.nowMs());
    while (!limiter.checkSync({ cost }).allowed) clock.advance(1);
    starts.push({ index, atMs: clock.nowMs(), cost });
  }
  return starts;
}

describe("a pace, whatever the limit and the traffic", () => {
  it("never starts more than the limit allows in any stretch of time", async () => {
    await fc.assert(
      fc.asyncProperty(traffic, async (one) => {
        const { starts } = await play(one);
        for (let from = 0; from < starts.length; from++) {
          let cost = 0;
          for (let to = from; to < starts.length; to++) {
            cost += starts[to]!.cost;
            const elapsedMs = starts[to]!.atMs - starts[from]!.atMs;
            expect(cost).toBeLessThanOrEqual(one.burst + (one.limit * elapsedMs) / one.perMs + 1e-6);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it("starts in order, each at the very millisecond at which it may", async () => {
    await fc.assert(
      fc.asyncProperty(traffic, async (one) => {
        const { starts } = await play(one);
        expect(starts).toEqual(playByHand(one));
      }),
      { numRuns: 60 },
    );
  });

  it("never runs more calls at once than allowed, and forgets aborted ones", async () => {
    const script = fc.array(
      fc.record({ afterMs: fc.nat(50), runsMs: fc.nat(120), abortAfterMs: fc.option(fc.nat(100)) }),
      { maxLength: 25 },
    );
    await fc.assert(
      fc.asyncProperty(
        script,
        fc.integer({ min: 1, max: 3 }),
        fc.option(fc.nat(80), { nil: undefined }),
        async (calls, concurrency, maxWaitMs) => {
          const time = new ManualTime();
          const paced = pace("100/s burst 3", { concurrency, maxWaitMs, clock: time.clock, schedule: time.schedule });
          const order: number[] = [];
          const outcomes: Promise<unknown>[] = [];
          let running = 0;
          for (const [index, { afterMs, runsMs, abortAfterMs }] of calls.entries()) {
            await time.advance(afterMs);
            const controller = new AbortController();
            const call = async (): Promise<void> => {
              order.push(index);
              running += 1;
              expect(running).toBeLessThanOrEqual(concurrency);
              expect(controller.signal.aborted).toBe(false);
              await new Promise<void>((resolve) => time.schedule(runsMs, resolve));
              running -= 1;
            };
            outcomes.push(paced(call, { signal: controller.signal }).catch((error) => error));
            if (abortAfterMs !== null) time.schedule(abortAfterMs, () => controller.abort(new Error("enough")));
          }
          await time.advance(1e6);
          await settled();
          await Promise.all(outcomes);
          expect(order).toEqual([...order].sort((one, other) => one - other));
          expect([paced.waiting, paced.running, running, time.timers]).toEqual([0, 0, 0, 0]);
        },
      ),
      { numRuns: 60 },
    );
  });
});
