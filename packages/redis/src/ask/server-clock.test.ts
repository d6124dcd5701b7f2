import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ServerClock } from "./server-clock.ts";

/** A question and its answer: this long after the last one, with these travel times. */
interface Exchange {
  readonly afterMs: number;
  readonly thereMs: number;
  readonly backMs: number;
}

/** Up to this many milliseconds, in 1024ths, whose sums are exact. */
const upTo = (mostMs: number): fc.Arbitrary<number> => fc.nat({ max: mostMs * 1024 }).map((parts) => parts / 1024);
const way = fc.oneof(upTo(3), upTo(500));

function exchange(longestPauseMs: number): fc.Arbitrary<Exchange> {
  return fc.record({ afterMs: upTo(longestPauseMs), thereMs: way, backMs: way });
}

/**
 * Lets a clock learn from a server that is ahead by `aheadMs`, starting at `localMs`, and returns the time after that.
 */
function hear(clock: ServerClock, aheadMs: number, localMs: number, { afterMs, thereMs, backMs }: Exchange): number {
  const sentMs = localMs + afterMs;
  const readMs = sentMs + thereMs;
  clock.learn(readMs + aheadMs, sentMs, readMs + backMs);
  return readMs + backMs;
}

const ahead = fc.tuple(upTo(1e6), upTo(1e6)).map(([one, other]) => one - other);

describe("the clock of a server", () => {
  it("is not known before the server has sent it", () => {
    const clock = new ServerClock();
    expect(clock.aheadMs).toBeUndefined();
    expect(clock.at(1000)).toBe(0);
  });

  it("is in whole milliseconds, rounded up", () => {
    const clock = new ServerClock();
    clock.learn(5000.4, 1000, 1001);
    expect(clock.at(1000)).toBe(5001);
    expect(clock.at(1000.7)).toBe(5002);
  });

  it("is never early, and late by at most the quickest round trip of the last minute", () => {
    fc.assert(
      fc.property(ahead, fc.array(exchange(100), { minLength: 1, maxLength: 40 }), (aheadMs, exchanges) => {
        const clock = new ServerClock();
        let quickestMs = Number.POSITIVE_INFINITY;
        let localMs = 0;
        for (const one of exchanges) {
          localMs = hear(clock, aheadMs, localMs, one);
          quickestMs = Math.min(quickestMs, one.thereMs + one.backMs);
          expect(clock.aheadMs!).toBeGreaterThanOrEqual(aheadMs);
          expect(clock.aheadMs!).toBeLessThanOrEqual(aheadMs + quickestMs);
          expect(clock.at(localMs)).toBe(Math.ceil(localMs + clock.aheadMs!));
        }
      }),
    );
  });

  it("follows a step of either clock with the next exchange, early by at most its way back", () => {
    fc.assert(
      fc.property(
        ahead,
        ahead,
        fc.array(exchange(100), { minLength: 1, maxLength: 10 }),
        exchange(100),
        (beforeMs, afterMs, exchanges, next) => {
          const clock = new ServerClock();
          let localMs = 0;
          for (const one of exchanges) localMs = hear(clock, beforeMs, localMs, one);
          const slowestMs = Math.max(...exchanges.map(({ thereMs, backMs }) => thereMs + backMs));
          hear(clock, afterMs, localMs, next);
          expect(clock.aheadMs!).toBeGreaterThanOrEqual(afterMs - next.backMs);
          expect(clock.aheadMs!).toBeLessThanOrEqual(afterMs + next.thereMs + slowestMs);
        },
      ),
    );
  });

  it("follows clocks that drift apart, if only once a minute", () => {
    const clock = new ServerClock();
    clock.learn(0, 0, 0);
    // A slow exchange adds nothing while a quick one is recent, and is all there is to go by later.
    clock.learn(30_010, 30_000, 30_020);
    expect(clock.aheadMs).toBe(0);
    clock.learn(60_010, 60_000, 60_020);
    expect(clock.aheadMs).toBe(10);
  });
});
