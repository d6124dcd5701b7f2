import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { MemoryCounters } from "../counters/memory-counters.ts";
import type { Algorithm, Window } from "../policy/policy.ts";
import { compileTestLimit, conversationStartMs, resolvedLimit, testWindow } from "../testing/index.ts";
import { SlidingLog } from "./sliding-log.ts";

/** What users rely on, for every algorithm, over random limits and random traffic. */

const buckets = ["gcra", "token_bucket", "leaky_bucket"] as const;
const all: readonly Algorithm[] = [...buckets, "fixed_window", "sliding_window", "sliding_log"];

interface Call {
  readonly afterMs: number;
  readonly cost: number;
}

const calls: fc.Arbitrary<Call[]> = fc.array(
  fc.record({
    // Instants between whole milliseconds too: clocks do not tick in milliseconds.
    afterMs: fc.oneof(
      fc.constant(0),
      fc.nat(40),
      fc.nat(3000),
      fc.nat(8000).map((eighths) => eighths / 8),
    ),
    cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 12 })),
  }),
  { minLength: 1, maxLength: 60 },
);

const perMs = fc.constantFrom(1, 7, 100, 500, 999, 1000, 1900, 10_000);

function windowFor(algorithm: Algorithm): fc.Arbitrary<Window> {
  const bucket = (buckets as readonly Algorithm[]).includes(algorithm);
  return fc
    .record({
      limit: bucket
        ? fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(0.3, 2.78, 16.67, 333))
        : fc.integer({ min: 1, max: 20 }),
      per: perMs,
      burst: fc.integer({ min: 1, max: 25 }),
    })
    .map(({ limit, per, burst }) => testWindow(limit, per, bucket ? burst : limit));
}

function open(algorithm: Algorithm, windows: readonly Window[]) {
  const clock = new ManualClock(conversationStartMs, 1000);
  const store = new MemoryCounters({ clock });
  const limit = compileTestLimit({ algorithm, windows });
  return {
    clock,
    store,
    limit,
    take: (cost: number) => store.take([resolvedLimit(limit, "u", cost)]),
    peek: (cost: number) => store.peek([resolvedLimit(limit, "u", cost)]),
  };
}

/** Costs that passed, and when, in milliseconds from the start. */
function admitted(
  algorithm: Algorithm,
  windows: readonly Window[],
  traffic: readonly Call[],
): { at: number; cost: number }[] {
  const { clock, take } = open(algorithm, windows);
  const passed: { at: number; cost: number }[] = [];
  let at = 0;
  for (const { afterMs, cost } of traffic) {
    clock.advance(afterMs);
    at += afterMs;
    if (take(cost).taken) passed.push({ at, cost });
  }
  return passed;
}

/** What each algorithm promises to admit at most between two admissions, both included. */
function mostBetween(algorithm: Algorithm, window: Window, fromMs: number, toMs: number): number {
  const per = window.per.kind === "ms" ? window.per.ms : Number.NaN;
  const elapsedMs = toMs - fromMs;
  const windowIndex = (at: number): number => Math.floor((conversationStartMs + Math.floor(at)) / per);
  switch (algorithm) {
    case "fixed_window":
      return window.limit * (windowIndex(toMs) - windowIndex(fromMs) + 1);
    case "sliding_window":
      return window.limit + (window.limit * elapsedMs) / per + 1e-6;
    case "sliding_log":
      return elapsedMs < per ? window.limit : Number.POSITIVE_INFINITY;
    default:
      return window.burst + (window.limit * (elapsedMs + 0.001)) / per;
  }
}

function expectNoIntervalOverrun(
  algorithm: Algorithm,
  window: Window,
  passed: readonly { at: number; cost: number }[],
): void {
  for (let from = 0; from < passed.length; from++) {
    let sum = 0;
    for (let to = from; to < passed.length; to++) {
      sum += passed[to]!.cost;
      if (sum > mostBetween(algorithm, window, passed[from]!.at, passed[to]!.at)) {
        expect.fail(`${sum} passed between ${passed[from]!.at} and ${passed[to]!.at} ms`);
      }
    }
  }
}

describe("never more than the limit allows, in any interval", () => {
  const promise: Record<Algorithm, string> = {
    gcra: "burst + rate × elapsed, to a microsecond",
    token_bucket: "burst + rate × elapsed, to a microsecond",
    leaky_bucket: "burst + rate × elapsed, to a microsecond",
    fixed_window: "the limit in each aligned window",
    sliding_window: "limit + rate × elapsed",
    sliding_log: "the limit in any interval shorter than the window",
  };
  for (const algorithm of all) {
    it(`${algorithm}: at most ${promise[algorithm]}`, () => {
      fc.assert(
        fc.property(windowFor(algorithm), calls, (window, traffic) => {
          expectNoIntervalOverrun(algorithm, window, admitted(algorithm, [window], traffic));
        }),
        { numRuns: 300 },
      );
    });
  }

  it("sliding_log: thousands of entries merge, count no less than they should, and are freed at most per/256 late", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(256, 1000, 2000, 10_000),
        fc.array(fc.nat(9), { minLength: 600, maxLength: 1500 }),
        (per, gaps) => {
          const log = new SlidingLog();
          const times: number[] = [];
          const countSince = (ms: number): number => times.filter((at) => at > ms).length;
          let at = 0;
          for (const gap of gaps) {
            at += gap;
            log.settle(at, per);
            log.add(at, 1, per);
            times.push(at);
            if (log.total < countSince(at - per) || log.total > countSince(at - per - per / 256)) {
              expect.fail(`${log.total} counted at ${at} ms`);
            }
            if (log.size > 257) expect.fail(`${log.size} entries`);
          }
        },
      ),
      { numRuns: 20 },
    );
  });
});

describe("retry-after is exact: refused before it, allowed at it", () => {
  for (const algorithm of all) {
    it(algorithm, () => {
      fc.assert(
        fc.property(fc.array(windowFor(algorithm), { minLength: 1, maxLength: 3 }), calls, (windows, traffic) => {
          const { clock, take, peek } = open(algorithm, windows);
          for (const { afterMs, cost } of traffic) {
            clock.advance(afterMs);
            const { taken, outcomes } = take(cost);
            const { fits, retryAfterMs } = outcomes[0]!;
            if (taken) expect(retryAfterMs).toBe(0);
            else if (fits === "never") {
              expect(cost).toBeGreaterThan(Math.min(...windows.map((window) => window.burst)));
              expect(retryAfterMs).toBe(Number.POSITIVE_INFINITY);
            } else {
              expect(Number.isInteger(retryAfterMs) && retryAfterMs >= 1).toBe(true);
              clock.advance(retryAfterMs - 1);
              expect(peek(cost).outcomes[0]!.fits).toBe("later");
              clock.advance(1);
              expect(peek(cost).outcomes[0]!.fits).toBe("now");
            }
          }
        }),
      );
    });
  }
});

describe("retry-after of the sliding window is exact even if division is not", () => {
  it("for limits, lengths and costs of any size", () => {
    const call = fc.record({ afterMs: fc.nat(3000), share: fc.double({ min: 0, max: 1, noNaN: true }) });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5000 }),
        fc.integer({ min: 1, max: 5000 }),
        fc.array(call, { maxLength: 30 }),
        (limit, per, traffic) => {
          const { clock, take, peek } = open("sliding_window", [testWindow(limit, per)]);
          for (const { afterMs, share } of traffic) {
            clock.advance(afterMs);
            const cost = Math.max(1, Math.round(share * limit));
            const { taken, outcomes } = take(cost);
            if (taken) continue;
            clock.advance(outcomes[0]!.retryAfterMs - 1);
            if (peek(cost).outcomes[0]!.fits === "now")
              expect.fail(`${cost} of ${limit}/${per}ms passes before its time`);
            clock.advance(1);
            if (peek(cost).outcomes[0]!.fits !== "now")
              expect.fail(`${cost} of ${limit}/${per}ms does not pass in time`);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it("for 777/s, whose seventh parts a double cannot hold", () => {
    for (let cost = 1; cost <= 777; cost++) {
      const { clock, take, peek } = open("sliding_window", [testWindow(777, 1000)]);
      take(777);
      const { retryAfterMs } = peek(cost).outcomes[0]!;
      clock.advance(retryAfterMs - 1);
      if (peek(cost).outcomes[0]!.fits === "now") expect.fail(`${cost} passes before its time`);
      clock.advance(1);
      if (peek(cost).outcomes[0]!.fits !== "now") expect.fail(`${cost} does not pass in time`);
    }
  });
});

describe("remaining is exactly the largest cost that passes", () => {
  for (const algorithm of all) {
    it(algorithm, () => {
      fc.assert(
        fc.property(windowFor(algorithm), calls, (window, traffic) => {
          const { clock, take, peek } = open(algorithm, [window]);
          for (const { afterMs, cost } of traffic) {
            clock.advance(afterMs);
            const { remaining } = take(cost).outcomes[0]!;
            if (remaining > 0) expect(peek(remaining).outcomes[0]!.fits).toBe("now");
            expect(peek(remaining + 1).outcomes[0]!.fits).not.toBe("now");
          }
        }),
      );
    });
  }
});

describe("more is left at moreAfterMs, and not before", () => {
  for (const algorithm of all) {
    it(algorithm, () => {
      const windows = fc.array(windowFor(algorithm), { minLength: 1, maxLength: 3 });
      fc.assert(
        fc.property(windows, calls, fc.nat(3), (some, traffic, every) => {
          const { clock, take, peek } = open(algorithm, some);
          traffic.forEach(({ afterMs, cost }, i) => {
            clock.advance(afterMs);
            const taken = take(cost).outcomes[0]!;
            if (i % (every + 1) !== 0) return;
            const outcome = i % 2 === 0 ? taken : peek(cost).outcomes[0]!;
            const { fits, remaining, moreAfterMs } = outcome;
            if (fits === "later") {
              expect(moreAfterMs).toBe(outcome.retryAfterMs);
            } else if (moreAfterMs === Number.POSITIVE_INFINITY) {
              expect(remaining).toBe(Math.min(...some.map(({ burst }) => Math.floor(burst))));
            } else {
              clock.advance(moreAfterMs - 1);
              const before = peek(1).outcomes[0]!.remaining;
              clock.advance(1);
              const at = peek(1).outcomes[0]!.remaining;
              expect(at, `of ${remaining} after ${moreAfterMs} ms`).toBeGreaterThan(remaining);
              // Where one log never admits the cost, how another stands is known by the wait for that cost.
              const isBound = fits === "never" && algorithm === "sliding_log";
              if (!isBound) expect(before, `of ${remaining} before ${moreAfterMs} ms`).toBe(remaining);
            }
          });
        }),
        { numRuns: 300 },
      );
    });
  }

  it("sliding_log: if entries merge it is never early, and for a preview at most per/256 late", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(256, 1000, 10_000),
        fc.array(fc.nat(9), { minLength: 270, maxLength: 500 }),
        fc.boolean(),
        (per, gaps, isPreview) => {
          const { clock, take, peek } = open("sliding_log", [testWindow(100_000, per)]);
          for (const gap of gaps) {
            clock.advance(gap);
            take(1);
          }
          clock.advance(3);
          const { remaining, moreAfterMs } = (isPreview ? peek(1) : take(1)).outcomes[0]!;
          const lateMs = isPreview ? Math.ceil(per / 256) : 0;
          clock.advance(moreAfterMs - 1 - lateMs);
          expect(peek(1).outcomes[0]!.remaining).toBe(remaining);
          clock.advance(1 + lateMs);
          expect(peek(1).outcomes[0]!.remaining).toBeGreaterThan(remaining);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("never for a one-off quota, nor for a full counter", () => {
    const once = open("fixed_window", [{ limit: 5, per: { kind: "never" }, burst: 5 }]);
    expect(once.take(2).outcomes[0]).toMatchObject({ remaining: 3, moreAfterMs: Number.POSITIVE_INFINITY });
    for (const algorithm of all) {
      const { moreAfterMs } = open(algorithm, [testWindow(5, 1000)]).peek(1).outcomes[0]!;
      expect(moreAfterMs, algorithm).toBe(Number.POSITIVE_INFINITY);
    }
  });
});

describe("a preview changes nothing", () => {
  for (const algorithm of all) {
    it(algorithm, () => {
      fc.assert(
        fc.property(windowFor(algorithm), calls, (window, traffic) => {
          const quiet = open(algorithm, [window]);
          const peeked = open(algorithm, [window]);
          for (const { afterMs, cost } of traffic) {
            quiet.clock.advance(afterMs);
            peeked.clock.advance(afterMs);
            peeked.peek(cost);
            peeked.peek(1);
            expect(peeked.take(cost)).toEqual(quiet.take(cost));
          }
        }),
      );
    });
  }
});

describe("a give-back never admits more", () => {
  for (const algorithm of all) {
    it(`${algorithm}, whenever and in whatever order takes are given back`, () => {
      const action = fc.record({
        afterMs: fc.oneof(fc.constant(0), fc.nat(300), fc.nat(3000)),
        cost: fc.integer({ min: 1, max: 6 }),
        // Which of the receipts that are out is given back before the take, if any.
        gives: fc.option(fc.nat(10), { nil: undefined }),
      });
      fc.assert(
        fc.property(windowFor(algorithm), fc.array(action, { minLength: 1, maxLength: 50 }), (window, actions) => {
          const { clock, store, limit } = open(algorithm, [window]);
          const passed: { at: number; cost: number; receipt: string | undefined }[] = [];
          let at = 0;
          for (const { afterMs, cost, gives } of actions) {
            clock.advance(afterMs);
            at += afterMs;
            const out = passed.filter((one) => one.receipt !== undefined);
            const chosen = gives === undefined || out.length === 0 ? undefined : out[gives % out.length];
            // Costs given back in time were not used; void give-backs were.
            if (chosen !== undefined && store.give(chosen.receipt!)) passed.splice(passed.indexOf(chosen), 1);
            else if (chosen !== undefined) chosen.receipt = undefined;
            const answer = store.take([resolvedLimit(limit, "u", cost)], { receipt: true });
            if (answer.taken) passed.push({ at, cost, receipt: answer.receipt });
          }
          expectNoIntervalOverrun(algorithm, window, passed);
        }),
        { numRuns: 300 },
      );
    });
  }
});

describe("a hold never admits more", () => {
  for (const algorithm of all) {
    it(`${algorithm}, whenever and in whatever order holds are settled, extended or left to expire`, () => {
      const action = fc.record({
        afterMs: fc.oneof(fc.constant(0), fc.nat(300), fc.nat(3000)),
        cost: fc.integer({ min: 1, max: 6 }),
        holdMs: fc.constantFrom(undefined, 1, 2000, 60_000, 60_000, 60_000),
        // Which of the holds is reported about before the take, if any, and what it used.
        settles: fc.option(fc.nat(10), { nil: undefined, freq: 3 }),
        actual: fc.constantFrom(0, 0, 0, 1, 2, 6),
        last: fc.constantFrom(true, true, false),
        gives: fc.boolean(),
      });
      fc.assert(
        fc.property(windowFor(algorithm), fc.array(action, { minLength: 1, maxLength: 50 }), (window, actions) => {
          const { clock, store, limit } = open(algorithm, [window]);
          const passed: { at: number; cost: number; amount: number; receipt: string | undefined }[] = [];
          let at = 0;
          for (const { afterMs, cost, holdMs, settles, actual, last, gives } of actions) {
            clock.advance(afterMs);
            at += afterMs;
            const out = passed.filter((one) => one.receipt !== undefined);
            const chosen = settles === undefined || out.length === 0 ? undefined : out[settles % out.length];
            // What was held and not used counts as never admitted. Neither does debt, as from a report that is late.
            if (chosen?.receipt?.startsWith("h") === true) {
              const settled = store.holds.commit(chosen.receipt, actual, last);
              if (!settled.expired) chosen.cost = Math.min(settled.actual, chosen.amount);
            } else if (chosen !== undefined && gives && store.give(chosen.receipt!))
              passed.splice(passed.indexOf(chosen), 1);
            const answer = store.take([resolvedLimit(limit, "u", cost)], { receipt: true, holdMs });
            if (answer.taken)
              passed.push({ at, cost: holdMs === undefined ? cost : 0, amount: cost, receipt: answer.receipt });
          }
          expectNoIntervalOverrun(algorithm, window, passed);
        }),
        { numRuns: 300 },
      );
    });
  }
});

describe("a credit admits as much as it gives back, and no more", () => {
  /** What happened, in order. Admissions that were given back by their receipts are not among it. */
  type Event = { readonly at: number; readonly admitted: number; readonly credited: number };

  /** Between any two admissions: the algorithm's promise, plus what was credited since the first, or since `always`. */
  function expectOnlyCredits(algorithm: Algorithm, window: Window, events: readonly Event[], always: boolean): void {
    for (let from = 0; from < events.length; from++) {
      if (events[from]!.admitted === 0) continue;
      let admitted = 0;
      let credited = always ? events.slice(0, from).reduce((sum, event) => sum + event.credited, 0) : 0;
      for (let to = from; to < events.length; to++) {
        const most = mostBetween(algorithm, window, events[from]!.at, events[to]!.at);
        admitted += events[to]!.admitted;
        credited += events[to]!.credited;
        if (admitted > most + credited) {
          expect.fail(`${admitted} passed between ${events[from]!.at} and ${events[to]!.at} ms, ${credited} credited`);
        }
      }
    }
  }

  const afterMs = fc.oneof(
    fc.constant(0),
    fc.nat(300),
    fc.nat(3000),
    fc.nat(8000).map((eighths) => eighths / 8),
  );
  const action = fc.record({
    afterMs,
    does: fc.constantFrom("take", "take", "take", "credit", "charge", "give"),
    cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 12 }), fc.constant(100_000)),
    which: fc.nat(10),
  });
  const actions = fc.array(action, { minLength: 1, maxLength: 80 });
  const smallActions = actions.map((steps) => steps.map((step) => ({ ...step, cost: Math.min(step.cost, 12) })));

  for (const algorithm of all) {
    it(`${algorithm}, whenever it comes, even to debt`, () => {
      fc.assert(
        fc.property(windowFor(algorithm), actions, (window, steps) => {
          const { clock, store, limit, take } = open(algorithm, [window]);
          const events: Event[] = [];
          let at = 0;
          for (const step of steps) {
            clock.advance(step.afterMs);
            at += step.afterMs;
            if (step.does === "credit") {
              store.charge([resolvedLimit(limit, "u", -step.cost)]);
              events.push({ at, admitted: 0, credited: step.cost });
            } else if (step.does === "charge") store.charge([resolvedLimit(limit, "u", step.cost)]);
            else if (take(step.cost).taken) events.push({ at, admitted: step.cost, credited: 0 });
          }
          expectOnlyCredits(algorithm, window, events, false);
        }),
        { numRuns: 500 },
      );
    });

    it(`${algorithm}, among receipts that are given back in whatever order`, () => {
      fc.assert(
        fc.property(windowFor(algorithm), smallActions, (window, steps) => {
          const { clock, store, limit } = open(algorithm, [window]);
          const events: (Event & { receipt: string | undefined })[] = [];
          let at = 0;
          for (const step of steps) {
            clock.advance(step.afterMs);
            at += step.afterMs;
            if (step.does === "give") {
              const out = events.filter((one) => one.receipt !== undefined);
              const chosen = out[step.which % Math.max(out.length, 1)];
              if (chosen === undefined) continue;
              if (store.give(chosen.receipt!)) events.splice(events.indexOf(chosen), 1);
              else chosen.receipt = undefined;
            } else if (step.does === "credit") {
              store.charge([resolvedLimit(limit, "u", -step.cost)]);
              events.push({ at, admitted: 0, credited: step.cost, receipt: undefined });
            } else {
              const { taken, receipt } = store.take([resolvedLimit(limit, "u", step.cost)], { receipt: true });
              if (taken) events.push({ at, admitted: step.cost, credited: 0, receipt });
            }
          }
          expectOnlyCredits(algorithm, window, events, true);
        }),
        { numRuns: 500 },
      );
    });

    it(`${algorithm}: once it has emptied the counter, earlier receipts add nothing`, () => {
      fc.assert(
        fc.property(windowFor(algorithm), actions, actions, (window, before, after) => {
          const { clock, store, limit } = open(algorithm, [window]);
          const receipts: string[] = [];
          const passed: { at: number; cost: number }[] = [];
          let at = 0;
          const run = (steps: typeof before): void => {
            for (const step of steps) {
              clock.advance(step.afterMs);
              at += step.afterMs;
              if (step.does === "give")
                store.give(receipts.splice(step.which % Math.max(receipts.length, 1), 1)[0] ?? "");
              else {
                const { taken, receipt } = store.take([resolvedLimit(limit, "u", step.cost)], { receipt: true });
                if (taken) passed.push({ at, cost: step.cost });
                if (receipt !== undefined && steps === before) receipts.push(receipt);
              }
            }
          };
          run(before);
          store.charge([resolvedLimit(limit, "u", -100_000)]);
          passed.length = 0;
          run(after);
          expectNoIntervalOverrun(algorithm, window, passed);
        }),
        { numRuns: 300 },
      );
    });

    it(`${algorithm}: the remainder rises by it, up to all there is`, () => {
      fc.assert(
        fc.property(windowFor(algorithm), actions, (window, steps) => {
          const { clock, store, limit, take, peek } = open(algorithm, [window]);
          for (const step of steps) {
            clock.advance(step.afterMs);
            if (step.does === "credit" || step.does === "give") {
              const before = peek(1).outcomes[0]!;
              store.charge([resolvedLimit(limit, "u", -step.cost)]);
              const after = peek(1).outcomes[0]!;
              const most = Math.floor(window.burst);
              const wanted = Math.min(before.remaining + step.cost, most);
              expect(after.remaining).toBeLessThanOrEqual(wanted);
              // Whole units of a window that fades are worth less than one: up to one of them is not given.
              expect(after.remaining).toBeGreaterThanOrEqual(algorithm === "sliding_window" ? wanted - 1 : wanted);
              expect(after.resetAfterMs).toBeLessThanOrEqual(before.resetAfterMs);
            } else take(step.cost);
          }
        }),
        { numRuns: 300 },
      );
    });
  }
});

describe("all or nothing", () => {
  it("a random set of limits of any algorithm charges all or none", () => {
    const limits = fc.array(
      fc.constantFrom(...all).chain((algorithm) => windowFor(algorithm).map((window) => ({ algorithm, window }))),
      { minLength: 2, maxLength: 5 },
    );
    fc.assert(
      fc.property(limits, calls, (specs, traffic) => {
        const clock = new ManualClock(conversationStartMs, 0);
        const store = new MemoryCounters({ clock });
        const compiled = specs.map(({ algorithm, window }, i) =>
          compileTestLimit({ algorithm, windows: [window], policy: `p${i}` }),
        );
        const asked = (cost: number) => compiled.map((limit) => resolvedLimit(limit, "u", cost));
        for (const { afterMs, cost } of traffic) {
          clock.advance(afterMs);
          const before = store.peek(asked(1)).outcomes.map((outcome) => outcome.remaining);
          const { taken, outcomes } = store.take(asked(cost));
          const after = store.peek(asked(1)).outcomes.map((outcome) => outcome.remaining);
          expect(taken).toBe(outcomes.every((outcome) => outcome.fits === "now"));
          if (taken) expect(after).toEqual(before.map((left) => left - cost));
          else expect(after).toEqual(before);
        }
      }),
    );
  });
});

describe("clock steps lock no subject out and give no more than one burst", () => {
  for (const algorithm of all) {
    it(`${algorithm}: the whole clock steps back, or the wall clock alone steps either way`, () => {
      const steps = fc.array(
        fc.tuple(fc.constantFrom("back", "wall-back", "wall-forward"), fc.integer({ min: 1, max: 10_000_000 })),
        { minLength: 1, maxLength: 5 },
      );
      fc.assert(
        fc.property(windowFor(algorithm), steps, (window, moves) => {
          const { clock, take } = open(algorithm, [window]);
          const per = window.per.kind === "ms" ? window.per.ms : 0;
          let admittedCost = 0;
          let elapsedMs = 0;
          const exhaust = (): void => {
            while (take(1).taken) admittedCost += 1;
          };
          exhaust();
          for (const [kind, ms] of moves) {
            if (kind === "back") clock.advance(-ms);
            else clock.stepWall(kind === "wall-back" ? -ms : ms);
            exhaust();
            clock.advance(1500);
            elapsedMs += 1500;
            exhaust();
          }
          // Aligned windows may begin anew with each step of the wall clock: one window's worth each time.
          const windows = window.burst * (2 + 2 * moves.length);
          expect(admittedCost).toBeLessThanOrEqual(windows + (window.limit * (elapsedMs + 1)) / per);
          // And after two windows of quiet every subject gets in again.
          clock.advance(2 * per + (2 * window.burst * per) / window.limit + 1001);
          expect(take(1).taken).toBe(true);
        }),
      );
    });
  }
});
