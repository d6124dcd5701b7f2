import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileTestLimit, testWindow } from "../testing/index.ts";
import { type ArrivalTake, broughtBack, chargeArrival, decideArrival, giveArrival, takeArrival } from "./arrival.ts";

const windowFor = (limit: number, perMs: number, burst = limit) =>
  compileTestLimit({ algorithm: "leaky_bucket", windows: [testWindow(limit, perMs, burst)] }).windows[0]!;

describe("an arrival time", () => {
  it("lets a cost of exactly the burst pass, at any rate and any length", () => {
    const limits = fc.oneof(
      fc.integer({ min: 1, max: 1000 }),
      fc.integer({ min: 1, max: 1_000_000_000 }),
      fc.double({ min: 0.001, max: 1e6, noNaN: true }),
    );
    fc.assert(
      fc.property(
        limits,
        fc.integer({ min: 1, max: 315_360_000_000 }),
        fc.integer({ min: 1, max: 100_000 }),
        fc.nat(10_000_000),
        (limit, perMs, burst, nowMs) => {
          // Rates above 1e9/s and buckets that take more than a century to drain are refused by the parser.
          fc.pre(limit / perMs <= 1e6 && (burst * perMs) / limit <= 3.2e12);
          const window = windowFor(limit, perMs, burst);
          expect(decideArrival(window, 0, burst, nowMs).fits).toBe("now");
          expect(decideArrival(window, 0, burst + 1, nowMs).fits).toBe("never");
          expect(decideArrival(window, 0, 1, nowMs).remaining).toBe(burst);
        },
      ),
    );
  });

  it("lets it pass at rates too fast for any slack", () => {
    for (const rate of [2_000_000, 5_000_000, 10_000_000]) {
      expect(decideArrival(windowFor(rate, 1000, 10), 0, 10, 0).fits).toBe("now");
    }
  });

  it("never shows more than the whole units a fractional burst holds", () => {
    expect(decideArrival(windowFor(1.9999999, 1000), 0, 1, 0)).toMatchObject({ remaining: 1 });
    expect(decideArrival(windowFor(1.9999999, 1000), 0, 2, 0).fits).toBe("never");
  });

  it("is decided alike for one window and for several", () => {
    const arrival = fc.oneof(fc.nat(5000), fc.integer({ min: -5000, max: -1 }));
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 60 }),
        arrival,
        fc.integer({ min: 1, max: 70 }),
        fc.nat(4000),
        (limit, burst, arrivalMs, cost, nowMs) => {
          const window = windowFor(limit, 1000, burst);
          const verdict = decideArrival(window, arrivalMs, cost, nowMs);
          const taken: ArrivalTake = {
            fits: "now",
            remaining: 0,
            retryAfterMs: 0,
            resetAfterMs: 0,
            moreAfterMs: 0,
            queuePosition: 0,
            queueDelayMs: 0,
          };
          const kept = takeArrival(window, arrivalMs, cost, nowMs, taken);
          const fits = verdict.fits === "now";
          expect(kept).toBe(fits ? verdict.word0 : broughtBack(window, arrivalMs, nowMs));
          expect(taken).toEqual({
            fits: verdict.fits,
            remaining: fits ? verdict.remainingAfter : verdict.remaining,
            retryAfterMs: verdict.retryAfterMs,
            resetAfterMs: fits ? verdict.resetAfterTakeMs : verdict.resetAfterMs,
            moreAfterMs: fits
              ? verdict.moreAfterTakeMs
              : verdict.fits === "later"
                ? verdict.retryAfterMs
                : verdict.moreAfterMs,
            queuePosition: verdict.queuePosition,
            queueDelayMs: verdict.queueDelayMs,
          });
        },
      ),
    );
  });

  it("further ahead than the limit allows is brought back to a counter that is just used up", () => {
    const window = windowFor(10, 1000);
    expect(decideArrival(window, 3_600_000, 1, 0)).toMatchObject({ fits: "later", retryAfterMs: 100, remaining: 0 });
  });

  it("in debt is paid off, up to one capacity, and a debt from a larger limit is brought back as well", () => {
    const window = windowFor(10, 1000);
    let arrivalMs = 0;
    for (let i = 0; i < 100; i++) arrivalMs = chargeArrival(window, arrivalMs, 10, 0);
    expect(decideArrival(window, arrivalMs, 1, 0)).toMatchObject({ fits: "later", retryAfterMs: 1100 });
    const large = windowFor(1000, 100_000);
    const deepMs = chargeArrival(large, chargeArrival(large, 0, 1000, 0), 1000, 0);
    expect(decideArrival(large, deepMs, 1, 0).retryAfterMs).toBe(100_100);
    expect(decideArrival(window, deepMs, 1, 0).retryAfterMs).toBe(100);
  });
});

describe("giving back an arrival", () => {
  const window = windowFor(1, 1000, 10);

  it("returns what is left of the cost, not what has drained of it", () => {
    const taken = decideArrival(window, 0, 5, 0).word0;
    const others = decideArrival(window, taken, 2, 3000).word0;
    // Had the five never been taken, the two would be alone.
    const alone = decideArrival(window, 0, 2, 3000).word0;
    expect(giveArrival(window, others, 5, taken, 3000)).toEqual({ arrivalMs: alone, givenMs: 2000 });
  });

  it("is void once the take would have drained, and after the counter was brought back or reset", () => {
    const taken = decideArrival(window, 0, 5, 0).word0;
    expect(giveArrival(window, taken + 1000, 5, taken, 5000)).toBeUndefined();
    expect(giveArrival(window, taken - 1, 5, taken, 1000)).toBeUndefined();
  });

  it("pays off debt first", () => {
    const taken = decideArrival(window, 0, 10, 0).word0;
    const inDebt = chargeArrival(window, taken, 5, 0);
    expect(decideArrival(window, inDebt, 1, 0).retryAfterMs).toBe(6000);
    const { arrivalMs } = giveArrival(window, inDebt, 10, taken, 0)!;
    expect(decideArrival(window, arrivalMs, 1, 0)).toMatchObject({ fits: "now", remaining: 5 });
    expect(giveArrival(window, inDebt, 1, taken, 0)!.arrivalMs).toBeLessThan(0);
  });
});
