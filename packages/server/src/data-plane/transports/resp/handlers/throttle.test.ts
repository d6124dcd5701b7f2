import fc from "fast-check";
import { type CounterStore, createLimiter, type Limiter, ManualClock } from "sluice";
import { failingCounters } from "sluice/testing";
import { describe, expect, it } from "vitest";
import { createTestService } from "../../../../testing/test-service.ts";
import type { CommandContext } from "../command.ts";
import { CommandReader } from "../command-reader.ts";
import { commands } from "../commands.ts";
import { createDispatch } from "../dispatch.ts";
import { Session } from "../session.ts";
import { createThrottleLimits } from "../throttle-limits.ts";

type Ask = (...words: readonly (string | number)[]) => string | Promise<string>;

/** Asks as a client would, and gives the reply as it is sent. */
function createAsk(limiter: Limiter, maxLimits?: number): Ask {
  const service = createTestService(limiter);
  const session = new Session(1, "", service.access, 0);
  session.refresh(0);
  const context: CommandContext = {
    service,
    session,
    throttleLimits: createThrottleLimits(maxLimits),
    totals: { uptimeMs: () => 0, connections: () => 1, connectionsTotal: () => 1, commandsTotal: () => 1 },
    checks: { count: 0 },
    commands,
  };
  const dispatch = createDispatch(commands, service);
  const reader = new CommandReader();
  return (...words) => {
    const parts = words.map((word) => Buffer.from(String(word)));
    reader.push(Buffer.from(`*${parts.length}\r\n${parts.map((part) => `$${part.length}\r\n${part}\r\n`).join("")}`));
    expect(reader.next()).toBe(true);
    return dispatch.run(reader, context);
  };
}

function numbers(reply: string | Promise<string>): readonly number[] | string {
  if (typeof reply !== "string") throw new Error("counters in memory answer at once");
  if (!reply.startsWith("*5\r\n")) return reply;
  return [...reply.matchAll(/:(-?\d+)\r\n/g)].map(([, number]) => Number(number));
}

/** A clock, and the answer to CL.THROTTLE with these words at its time. */
function onClock(): { readonly clock: ManualClock; readonly throttle: (...words: (string | number)[]) => unknown } {
  const clock = new ManualClock();
  const ask = createAsk(createLimiter({ clock }));
  return { clock, throttle: (...words) => numbers(ask("CL.THROTTLE", ...words)) };
}

interface Numbers {
  readonly maxBurst: number;
  readonly count: number;
  readonly period: number;
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));

/**
 * redis-cell's arithmetic without rounding: times are whole numbers of a unit that every interval is a multiple of. A counter
 * that is further ahead than its limit allows, because the limit was another one, is just used up.
 */
class CellModel {
  readonly #unitsPerMs: bigint;
  #arrival = 0n;
  #now = 0n;

  constructor(limits: readonly Numbers[]) {
    this.#unitsPerMs = BigInt(limits.reduce((all, { count }) => (all / gcd(all, count)) * count, 4));
  }

  advance(quarterMs: number): void {
    this.#now += (BigInt(quarterMs) * this.#unitsPerMs) / 4n;
  }

  /** Limited, limit, remaining, and the two times in units. −1 if there is none. */
  ask(
    { maxBurst, count, period }: Numbers,
    quantity: number,
  ): { readonly answer: number[]; retry: bigint; reset: bigint } {
    const interval = (BigInt(period) * 1_000n * this.#unitsPerMs) / BigInt(count);
    const limit = BigInt(maxBurst) + 1n;
    const tolerance = interval * limit;
    const increment = interval * BigInt(quantity);
    const raw = this.#arrival > this.#now ? this.#arrival - this.#now : 0n;
    const isBeyond = raw > tolerance;
    const ahead = isBeyond ? tolerance : raw;
    const fits = ahead + increment <= tolerance;
    const after = fits ? ahead + increment : ahead;
    if (quantity > 0) this.#arrival = this.#now + after;
    return {
      answer: [fits ? 0 : 1, Number(limit), Number((tolerance - after) / interval)],
      retry: fits || increment > tolerance ? -1n : ahead + increment - tolerance,
      reset: after,
    };
  }

  seconds(time: bigint, ms = 0): number {
    if (time < 0n) return -1;
    const second = 1_000n * this.#unitsPerMs;
    const moved = time + BigInt(ms) * this.#unitsPerMs;
    return Number((moved + second - 1n) / second);
  }
}

describe("CL.THROTTLE", () => {
  it("answers as in redis-cell's own example", () => {
    const { throttle } = onClock();
    expect(throttle("user123", 15, 30, 60)).toEqual([0, 16, 15, -1, 2]);
    expect(throttle("user123", 15, 30, 60, 15)).toEqual([0, 16, 0, -1, 32]);
    expect(throttle("user123", 15, 30, 60)).toEqual([1, 16, 0, 2, 32]);
    expect(throttle("another", 15, 30, 60)).toEqual([0, 16, 15, -1, 2]);
  });

  it("answers step by step as a limit of five, one a second, must", () => {
    const { clock, throttle } = onClock();
    let atMs = 0;
    const at = (ms: number, quantity: number): unknown => {
      clock.advance(ms - atMs);
      atMs = ms;
      return throttle("foo", 4, 1, 1, quantity);
    };
    expect(at(0, 6), "never fits").toEqual([1, 5, 5, -1, 0]);
    for (const left of [4, 3, 2, 1, 0]) expect(at(0, 1)).toEqual([0, 5, left, -1, 5 - left]);
    expect(at(0, 1)).toEqual([1, 5, 0, 1, 5]);
    expect(at(3_000, 1)).toEqual([0, 5, 2, -1, 3]);
    expect(at(3_100, 1), "3.9 s are four").toEqual([0, 5, 1, -1, 4]);
    expect(at(4_000, 1)).toEqual([0, 5, 1, -1, 4]);
    expect(at(8_000, 1)).toEqual([0, 5, 4, -1, 1]);
    expect(at(9_500, 1)).toEqual([0, 5, 4, -1, 1]);
    expect(at(9_500, 0), "a peek").toEqual([0, 5, 4, -1, 1]);
    expect(at(9_500, 2)).toEqual([0, 5, 2, -1, 3]);
    expect(at(9_500, 5)).toEqual([1, 5, 2, 3, 3]);
  });

  it("peeks at a counter that is used up, and calls nothing of it too much", () => {
    const { throttle } = onClock();
    expect(throttle("k", 0, 1, 60)).toEqual([0, 1, 0, -1, 60]);
    expect(throttle("k", 0, 1, 60, 0)).toEqual([0, 1, 0, -1, 60]);
    expect(throttle("k", 0, 1, 60)).toEqual([1, 1, 0, 60, 60]);
  });

  it("says never to a quantity above the limit, however large", () => {
    const { throttle } = onClock();
    throttle("k", 4, 1, 1);
    for (const quantity of [6, 100_001, Number.MAX_SAFE_INTEGER])
      expect(throttle("k", 4, 1, 1, quantity)).toEqual([1, 5, 4, -1, 1]);
  });

  it("counts thirds of a second without losing or adding one", () => {
    const { throttle } = onClock();
    expect(throttle("k", 2, 3, 1)).toEqual([0, 3, 2, -1, 1]);
    expect(throttle("k", 2, 3, 1, 2)).toEqual([0, 3, 0, -1, 1]);
    expect(throttle("k", 2, 3, 1)).toEqual([1, 3, 0, 1, 1]);
  });

  it("continues with the same counter when the numbers change", () => {
    const { clock, throttle } = onClock();
    expect(throttle("k", 9, 10, 10, 5)).toEqual([0, 10, 5, -1, 5]);
    expect(throttle("k", 19, 10, 10, 1), "a larger burst").toEqual([0, 20, 14, -1, 6]);
    expect(throttle("k", 9, 20, 10, 0), "twice as fast: 6 s are twelve, of ten").toEqual([0, 10, 0, -1, 5]);
    clock.advance(1_000);
    expect(throttle("k", 0, 1, 1), "a lowered limit is used up, and owes nothing").toEqual([1, 1, 0, 1, 1]);
  });

  it("answers as redis-cell's arithmetic without rounding does, on random limits and traffic", () => {
    const limit = fc
      .record({
        maxBurst: fc.integer({ min: 0, max: 50 }),
        count: fc.integer({ min: 1, max: 1_000 }),
        period: fc.integer({ min: 1, max: 100 }),
      })
      // Intervals of a millisecond at least: below that, roundings add up to something sooner.
      .filter(({ count, period }) => count <= period * 1_000);
    const step = fc.record({
      quarterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 40_000 })),
      quantity: fc.oneof(fc.constant(1), fc.integer({ min: 0, max: 60 })),
      which: fc.nat({ max: 1 }),
    });
    const limits = fc.oneof(
      { weight: 3, arbitrary: fc.tuple(limit) },
      { weight: 1, arbitrary: fc.tuple(limit, limit) },
    );
    fc.assert(
      fc.property(limits, fc.array(step, { minLength: 1, maxLength: 80 }), (given, steps) => {
        const { clock, throttle } = onClock();
        const model = new CellModel(given);
        for (const { quarterMs, quantity, which } of steps) {
          clock.advance(quarterMs / 4);
          model.advance(quarterMs);
          const numbers = given[which % given.length]!;
          const { maxBurst, count, period } = numbers;
          const got = throttle("k", maxBurst, count, period, quantity) as number[];
          const { answer, retry, reset } = model.ask(numbers, quantity);
          expect(got.slice(0, 3)).toEqual(answer);
          expect(got[3]).toBe(model.seconds(retry));
          // If an interval is not a whole number of nanoseconds, up to a millisecond above whole seconds is ignored.
          const isExact = Number.isInteger((period * 1_000 * 2 ** 20) / count);
          const whole = model.seconds(reset);
          const allowed = isExact && given.length === 1 ? [whole] : [whole, Math.max(model.seconds(reset, -1), 1)];
          // And nanoseconds of one limit, reported by another that has none, are a second more.
          if (given.length > 1) allowed.push(model.seconds(reset, 1));
          expect(allowed).toContain(got[4]);
        }
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    [["k", "x", "1", "1"], "max_burst must be a whole number from 0 to 999999999999, not 'x'"],
    [["k", "-1", "1", "1"], "max_burst must be a whole number from 0 to 999999999999, not '-1'"],
    [["k", "1", "0", "1"], "count must be a whole number from 1 to 1000000000000, not '0'"],
    [["k", "1", "1.5", "1"], "count must be a whole number from 1 to 1000000000000, not '1.5'"],
    [["k", "1", "1", "0"], "period must be a whole number from 1 to 315619200, not '0'"],
    [["k", "1", "1", ""], "period must be a whole number from 1 to 315619200, not ''"],
    [["k", "1", "10000001", "1"], "count must be at most 10000000 a second"],
    [["k", "999999999", "1", "86400"], "max_burst must be such that a full burst flows out again within 100 years"],
    [["k", "1", "1", "1", "-1"], "quantity must be a whole number from 0 to 9007199254740991, not '-1'"],
    [["k", "1", "1", "1", "9\r\n9"], "quantity must be a whole number from 0 to 9007199254740991, not '9 9'"],
    [["k", "200000", "1", "1", "100001"], "quantity must be at most 100000 if the limit has room for more"],
    [["a".repeat(4_097), "1", "1", "1"], "dimensions.key is 4097 characters long; at most 4096 are allowed"],
    [["k", "1", "1"], "wrong number of arguments for 'cl.throttle' command"],
    [["k", "1", "1", "1", "1", "1"], "wrong number of arguments for 'cl.throttle' command"],
  ])("refuses %j, and says why", (words, message) => {
    expect(onClock().throttle(...words)).toBe(`-ERR ${message}\r\n`);
  });

  it("keeps limits that are in use, however many others come", () => {
    const clock = new ManualClock();
    const ask = createAsk(createLimiter({ clock }), 10);
    for (let i = 0; i < 100; i++) {
      expect(numbers(ask("CL.THROTTLE", `k${i}`, i, 1, 1))).toEqual([0, i + 1, i, -1, 1]);
      expect(numbers(ask("CL.THROTTLE", "k", 99, 1, 1))).toEqual([0, 100, 99 - i, -1, i + 1]);
    }
  });

  it("allows everything while counters are unavailable, and shows the limit as full", async () => {
    const ask = createAsk(createLimiter({ counters: away() }));
    for (const quantity of [1, 0, 1e9])
      expect(await ask("CL.THROTTLE", "k", 15, 30, 60, quantity)).toBe("*5\r\n:0\r\n:16\r\n:16\r\n:-1\r\n:0\r\n");
  });
});

describe("CL.THROTTLE while the kill switch is on", () => {
  const forced = (mode: "open" | "closed"): ((...words: (string | number)[]) => unknown) => {
    const clock = new ManualClock();
    const limiter = createLimiter({ clock });
    limiter.force({ mode, untilMs: clock.epochMs() + 90_000 });
    const ask = createAsk(limiter);
    return (...words) => numbers(ask("CL.THROTTLE", ...words));
  };

  it.each([1, 5, 0, 1e9])("is limited until it ends if that is closed, for %d", (quantity) => {
    expect(forced("closed")("k", 15, 30, 60, quantity)).toEqual([1, 16, 0, 90, 90]);
  });

  it.each([1, 5, 0, 1e9])("is not limited if that is open, for %d", (quantity) => {
    expect(forced("open")("k", 15, 30, 60, quantity)).toEqual([0, 16, 16, -1, 0]);
  });
});

/** A store that is never available. */
const away = (): CounterStore => failingCounters(() => new Error("unavailable"));
