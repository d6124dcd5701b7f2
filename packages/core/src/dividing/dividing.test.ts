import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { noDemand, observeDemand } from "./demand.ts";
import { divideWhole, fillRates, fillShares } from "./fill-shares.ts";
import { emptyBucket, resize, takeFrom } from "./share-bucket.ts";
import { publish, receive, shareAt, startHolder } from "./share-holder.ts";
import { playWorld, type WorldHolder, worstExcess } from "./testing/divided-world.ts";

const asking = fc.uniqueArray(
  fc.record({ id: fc.string({ minLength: 1, maxLength: 3 }), demand: fc.double({ min: 0, max: 1e6, noNaN: true }) }),
  { selector: ({ id }) => id, maxLength: 12 },
);
const amount = fc.double({ min: 0.01, max: 1e7, noNaN: true });
const sum = (values: Iterable<number>): number => [...values].reduce((one, other) => one + other, 0);

describe("filling shares", () => {
  it("gives away the whole rate and no more, the same in any order, and no holder less than its floor", () => {
    fc.assert(
      fc.property(amount, asking, (rate, list) => {
        const rates = fillRates(rate, list);
        expect(sum(rates.values())).toBeLessThanOrEqual(rate);
        if (list.length > 0) expect(sum(rates.values())).toBeGreaterThan(rate * (1 - 1e-9));
        expect(fillRates(rate, list.toReversed())).toEqual(rates);
        for (const one of rates.values()) expect(one).toBeGreaterThan((rate / list.length) * 0.0499);
      }),
    );
  });

  it("gives those that need little what they need, and the others alike", () => {
    const rates = fillRates(120, [
      { id: "a", demand: 1_000 },
      { id: "b", demand: 40 },
      { id: "c", demand: 5 },
    ]);
    expect([...rates].map(([id, rate]) => [id, Math.round(rate * 10) / 10])).toEqual([
      ["c", 6],
      ["b", 48],
      ["a", 66],
    ]);
  });

  it("shares what no holder needs", () => {
    const list = ["a", "b", "c", "d"].map((id) => ({ id, demand: 0 }));
    expect([...fillRates(100, list).values()]).toEqual([25, 25, 25, 25]);
  });

  it("divides whole amounts without a unit too many, the remainders to the first of the largest", () => {
    fc.assert(
      fc.property(fc.nat({ max: 1_000 }), asking, (whole, list) => {
        const parts = divideWhole(whole, new Map(list.map(({ id, demand }) => [id, demand])));
        const isAny = list.some(({ demand }) => demand > 0);
        expect(sum(parts.values())).toBe(isAny ? whole : 0);
        for (const part of parts.values()) expect(Number.isInteger(part) && part >= 0).toBe(true);
      }),
    );
    const weights = new Map([
      ["b", 1],
      ["a", 1],
      ["c", 1],
    ] as const);
    expect(divideWhole(4, weights)).toEqual(
      new Map([
        ["a", 2],
        ["b", 1],
        ["c", 1],
      ]),
    );
  });
});

describe("demand", () => {
  it("knows three quarters of a shift after two half-lives, and forgets as fast", () => {
    let demand = noDemand;
    for (const nowMs of [2_000, 4_000]) demand = observeDemand(demand, 200, nowMs);
    expect(demand.perSecond).toBeCloseTo(75);
    for (const nowMs of [6_000, 8_000]) demand = observeDemand(demand, 0, nowMs);
    expect(demand.perSecond).toBeCloseTo(18.75);
  });

  it("does not take one request in a millisecond for a thousand a second", () => {
    expect(observeDemand({ perSecond: 0, atMs: 10 }, 1, 11).perSecond).toBeLessThan(0.3);
  });
});

const limit = { rate: 100, burst: 50, ttlMs: 5_000, marginMs: 500 };

/** An exchange of these holders' publications without delay, one after another. */
function exchangeAll(
  holders: Parameters<typeof publish>[0][],
  demands: readonly number[],
  nowMs: number,
): typeof holders {
  const sent = holders.map((holder, index) => publish(holder, demands[index]!));
  return sent.map(({ holder, publication }, index) => {
    // Later ones have not arrived yet.
    const seen = sent.slice(0, index + 1).map((one) => ({ publication: one.publication, ageMs: 0 }));
    const before =
      index === sent.length - 1
        ? seen
        : [
            ...seen,
            ...sent.slice(index + 1).map(({ publication: own }) => ({
              publication: { ...own, plan: holders[sent.findIndex((one) => one.publication === own)]!.plan },
              ageMs: 500,
            })),
          ];
    return receive(holder, limit, { sequence: publication.sequence, sentMs: nowMs, nowMs, seen: before });
  });
}

describe("a holder", () => {
  it("has nothing before every living holder follows its plan, and then all of it within a few exchanges", () => {
    let holders = ["a", "b", "c"].map(startHolder);
    const steps: number[] = [];
    for (let step = 0; step < 6; step++) {
      holders = exchangeAll(holders, [80, 10, 10], step * 1_000);
      steps.push(Math.round(sum(holders.map((one) => shareAt(one, step * 1_000).rate))));
    }
    expect(steps[0]).toBe(0);
    expect(steps.at(-1)).toBe(100);
    const [a, b] = holders.map((one) => shareAt(one, 5_000).rate);
    expect(a).toBeGreaterThan(4 * b!);
  });

  it("shrinks at once, and lets another grow only afterwards", () => {
    let holders = ["a", "b"].map(startHolder);
    let nowMs = 0;
    const step = (demands: readonly number[]): readonly number[] => {
      nowMs += 1_000;
      holders = exchangeAll(holders, demands, nowMs);
      return holders.map((one) => shareAt(one, nowMs).rate);
    };
    for (let i = 0; i < 5; i++) step([100, 0]);
    const seen: (readonly number[])[] = [];
    for (let i = 0; i < 5; i++) seen.push(step([0, 100]));
    for (const rates of seen) expect(sum(rates)).toBeLessThanOrEqual(100);
    const firstLower = seen.findIndex(([a]) => a! < 50);
    const firstHigher = seen.findIndex(([, b]) => b! > 50);
    expect(firstLower).toBeGreaterThanOrEqual(0);
    expect(firstHigher).toBeGreaterThan(firstLower);
  });

  it("lapses when its publications are not answered, and ignores answers to earlier ones", () => {
    let [a] = [startHolder("a")];
    const alone = (nowMs: number): void => {
      const sent = publish(a, 10);
      const seen = [{ publication: sent.publication, ageMs: 0 }];
      a = receive(sent.holder, limit, { sequence: sent.publication.sequence, sentMs: nowMs, nowMs, seen });
    };
    for (const nowMs of [0, 1_000, 2_000]) alone(nowMs);
    expect([shareAt(a, 6_999).rate, shareAt(a, 7_000).rate]).toEqual([100, 0]);
    const late = publish(a, 10);
    const seen = [{ publication: late.publication, ageMs: 0 }];
    const answer = { sequence: late.publication.sequence, sentMs: 3_000, nowMs: 8_000, seen };
    expect(shareAt(receive(late.holder, limit, answer), 8_000).rate).toBe(0);
    const newer = publish(late.holder, 10).holder;
    expect(receive(newer, limit, { ...answer, nowMs: 3_100 })).toBe(newer);
  });
});

describe("the bucket of a share", () => {
  it("starts empty, keeps its tokens when it grows, and loses what no longer fits when it shrinks", () => {
    const untilMs = 60_000;
    let bucket = resize(emptyBucket, { rate: 10, burst: 20 }, { untilMs, nowMs: 0 });
    expect(takeFrom(bucket, 1, 99).allowed).toBe(false);
    expect(takeFrom(bucket, 1, 100).allowed).toBe(true);
    bucket = resize(bucket, { rate: 100, burst: 200 }, { untilMs, nowMs: 10_000 });
    expect(bucket.tokens).toBe(20);
    expect(resize(bucket, { rate: 1, burst: 3 }, { untilMs, nowMs: 10_000 }).tokens).toBe(3);
  });

  it("is empty once its share has lapsed, even if it is renewed later", () => {
    const bucket = resize(emptyBucket, { rate: 10, burst: 20 }, { untilMs: 5_000, nowMs: 0 });
    expect(takeFrom(bucket, 1, 4_999).allowed).toBe(true);
    expect(takeFrom(bucket, 1, 5_000).allowed).toBe(false);
    const renewed = resize(bucket, { rate: 10, burst: 20 }, { untilMs: 20_000, nowMs: 10_000 });
    expect(takeFrom(renewed, 1, 10_050).allowed).toBe(false);
    expect(takeFrom(renewed, 1, 10_100).allowed).toBe(true);
  });
});

const maxSkew = 0.01;
const lengthMs = 60_000;
const life = fc.record({
  fromMs: fc.integer({ min: 0, max: 30_000 }),
  livesMs: fc.integer({ min: 500, max: 90_000 }),
  skew: fc.double({ min: -maxSkew, max: maxSkew, noNaN: true }),
  // Mostly more than there is: an unused share hides a mistake.
  demand: fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 50, max: 400 })), { minLength: 1, maxLength: 6 }),
  cutOff: fc.array(
    fc.record({ fromMs: fc.integer({ min: 5_000, max: 55_000 }), livesMs: fc.integer({ min: 2_000, max: 15_000 }) }),
    { maxLength: 3 },
  ),
});
const world = fc.record({
  lives: fc.array(life, { minLength: 1, maxLength: 6 }),
  rate: fc.double({ min: 0.5, max: 150, noNaN: true }),
  burst: fc.integer({ min: 1, max: 40 }),
  maxDelayMs: fc.constantFrom(1, 200, 1_500, 4_000),
  lost: fc.constantFrom(0, 0, 0.1, 0.5),
  seed: fc.nat({ max: 2 ** 31 - 2 }),
});

function randomFrom(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

type Life = Omit<WorldHolder, "id" | "untilMs" | "cutOff"> & {
  readonly livesMs: number;
  readonly cutOff?: readonly { readonly fromMs: number; readonly livesMs: number }[];
};

function livingHolders(lives: readonly Life[]): readonly WorldHolder[] {
  return lives.map(({ livesMs, cutOff = [], ...one }, index) => ({
    ...one,
    id: `h${index}`,
    untilMs: one.fromMs + livesMs,
    cutOff: cutOff.map(({ fromMs, livesMs: lastsMs }) => ({ fromMs, untilMs: fromMs + lastsMs })),
  }));
}

describe("a divided limit", () => {
  it("admits at most rate × t + burst in every interval, whatever joins, dies, is delayed, lost, skewed or shifts", () => {
    let most = 0;
    fc.assert(
      fc.property(world, ({ lives, rate, burst, maxDelayMs, lost, seed }) => {
        const divided = { rate, burst, ttlMs: 5_000, marginMs: 500 };
        const random = randomFrom(seed);
        const { admitted } = playWorld({
          limit: divided,
          holders: livingHolders(lives),
          lengthMs,
          random,
          maxDelayMs,
          lost,
        });
        most = Math.max(most, admitted.length);
        // Tokens refill by the holder's own clock.
        expect(worstExcess(admitted, { rate: rate * (1 + maxSkew), burst })).toBeLessThan(1e-6);
      }),
      { numRuns: 250 },
    );
    // A world in which nothing passes would prove nothing.
    expect(most).toBeGreaterThan(1_000);
  });

  it("would not without its rules: holders that each have the whole limit exceed it at once", () => {
    const admitted = ["a", "b"].flatMap((holder) => Array.from({ length: 50 }, () => ({ atMs: 0, holder })));
    expect(worstExcess(admitted, { rate: 100, burst: 50 })).toBeGreaterThan(1);
  });

  it("uses nearly all of the limit while demand is steady, and follows a shift within a few exchanges", () => {
    const shift = (first: number, second: number): readonly number[] => [first, first, second, second];
    const holders = livingHolders([
      { fromMs: 0, livesMs: 1e9, skew: 0.001, demand: shift(200, 5) },
      { fromMs: 0, livesMs: 1e9, skew: -0.001, demand: shift(5, 200) },
      { fromMs: 0, livesMs: 1e9, skew: 0, demand: [20] },
    ]);
    const divided = { rate: 100, burst: 100, ttlMs: 5_000, marginMs: 500 };
    const played = playWorld({ limit: divided, holders, lengthMs, random: randomFrom(7), maxDelayMs: 50, lost: 0 });
    const between = (fromMs: number, untilMs: number): number =>
      played.admitted.filter(({ atMs }) => atMs >= fromMs && atMs < untilMs).length;
    expect(between(15_000, 30_000)).toBeGreaterThan(0.95 * 1_500);
    expect(between(45_000, 60_000)).toBeGreaterThan(0.9 * 1_500);
    expect(played.shares.get("h1")).toBeGreaterThan(60);
    expect(played.shares.get("h0")).toBeLessThan(15);
    for (const rate of played.rates) expect(rate).toBeLessThanOrEqual(100);
  });

  it("gives what a dead holder had to the others once its share has run out", () => {
    const holders = livingHolders([
      { fromMs: 0, livesMs: 20_000, skew: 0, demand: [300] },
      { fromMs: 0, livesMs: 1e9, skew: 0, demand: [300] },
    ]);
    const divided = { rate: 100, burst: 20, ttlMs: 5_000, marginMs: 500 };
    const played = playWorld({ limit: divided, holders, lengthMs, random: randomFrom(3), maxDelayMs: 20, lost: 0 });
    expect(played.shares.get("h1")).toBeCloseTo(100);
    expect(fillShares(divided, [{ id: "h1", demand: 300 }]).get("h1")).toEqual({ rate: 100, burst: 20 });
  });
});
