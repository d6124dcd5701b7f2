import * as fc from "fast-check";
import { type Algorithm, ManualClock, MemoryCounters } from "sluice";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { describe, expect, test } from "vitest";
import {
  type Admission,
  type Course,
  type Era,
  exactMost,
  type JudgedKind,
  judgeOvershoot,
  judgeSteadyOvershoot,
} from "./judge-overshoot.ts";

const kinds = ["arrival", "count", "sliding"] as const;
const algorithms: Record<JudgedKind, Algorithm> = {
  arrival: "token_bucket",
  count: "fixed_window",
  sliding: "sliding_window",
};
const originMs = 1_700_000_000_000;

function at(ms: number, cost = 1): Admission {
  return { fromMs: ms, toMs: ms, cost };
}

function createHistory(kind: JudgedKind, era: Partial<Era>, rest: Partial<Course> = {}): Course {
  const limit = era.limit ?? 10;
  return { kind, perMs: 1000, originMs, eras: [{ sinceMs: 0, limit, burst: limit, allowance: 0, ...era }], ...rest };
}

/** The greediest traffic possible: one unit whenever one passes, tried every `stepMs`. */
function greedily(course: Course, fromMs: number, toMs: number, stepMs: number): Admission[] {
  const clock = new ManualClock(originMs + fromMs, 1000);
  const counters = new MemoryCounters({ clock });
  const { limit, burst } = course.eras[0]!;
  const taken = compileTestLimit({
    algorithm: algorithms[course.kind],
    windows: [testWindow(limit, course.perMs, course.kind === "arrival" ? burst : limit)],
  });
  const admissions: Admission[] = [];
  for (let ms = fromMs; ms <= toMs; ms += stepMs) {
    while (counters.take([resolvedLimit(taken, "u")]).taken) admissions.push(at(ms));
    clock.advance(stepMs);
  }
  return admissions;
}

describe("the judge knows the most that an algorithm admits", () => {
  test("arrivals: the burst, and the rate since", () => {
    const course = createHistory("arrival", { limit: 10, burst: 5 });
    expect(exactMost(course, 0, 1000)).toBeCloseTo(15, 1);
    const admissions = greedily(course, 0, 2000, 100);
    expect(judgeOvershoot(admissions, course).beyond).toBeLessThanOrEqual(0);
    expect(judgeOvershoot(admissions, course).beyond).toBeGreaterThan(-0.1);
    expect(judgeOvershoot([...admissions, at(2000)], course).beyond).toBeGreaterThan(0.9);
  });

  test("fixed windows: the limit in each, and twice around an end", () => {
    const course = createHistory("count", {});
    expect(exactMost(course, 0, 999)).toBeCloseTo(10, 3);
    expect(exactMost(course, 999, 1000)).toBeCloseTo(20, 3);
    expect(exactMost(course, 999, 3000)).toBeCloseTo(40, 3);
    const admissions = greedily(course, 900, 1100, 100);
    expect(admissions).toHaveLength(20);
    expect(judgeOvershoot(admissions, course).beyond).toBeLessThanOrEqual(0);
    expect(judgeOvershoot([...admissions, at(1000)], course).beyond).toBeGreaterThan(0.9);
  });

  test("sliding windows: the limit at the end of one, and what has drained since", () => {
    const course = createHistory("sliding", {});
    expect(exactMost(course, 0, 999)).toBeCloseTo(10, 3);
    expect(exactMost(course, 999, 1500)).toBeCloseTo(15, 3);
    expect(exactMost(course, 500, 1500)).toBeCloseTo(15, 3);
    expect(exactMost(course, 500, 2500)).toBeCloseTo(25, 3);
    const admissions = greedily(course, 999, 2000, 1);
    expect(admissions.filter(({ toMs }) => toMs <= 1500)).toHaveLength(15);
    expect(judgeOvershoot(admissions, course).beyond).toBeLessThanOrEqual(0);
    expect(judgeOvershoot(admissions, course).beyond).toBeGreaterThan(-0.1);
    expect(judgeOvershoot([...admissions, at(2000)], course).beyond).toBeGreaterThan(0.9);
  });

  test.each(kinds)("%s: an allowance is spent once in any interval", (kind) => {
    const course = createHistory(kind, { allowance: 3 });
    const full = greedily(course, 990, 1900, 10);
    const beyond = (...extra: Admission[]): number => judgeOvershoot([...full, ...extra], course).beyond;
    expect(beyond(at(1500, 3))).toBeLessThanOrEqual(0);
    expect(beyond(at(1500, 4))).toBeGreaterThan(0);
    expect(beyond(at(1100, 2), at(1900, 1))).toBeLessThanOrEqual(0);
    expect(beyond(at(1100, 2), at(1900, 2))).toBeGreaterThan(0);
  });

  test("a decision at an unknown instant counts only where it must have been", () => {
    const course = createHistory("arrival", { limit: 1, burst: 1 });
    const during = (fromMs: number, toMs: number): Admission => ({ fromMs, toMs, cost: 1 });
    expect(judgeOvershoot([during(0, 5000), during(0, 5000), during(4000, 5000)], course).beyond).toBeLessThan(0);
    expect(judgeOvershoot([during(4000, 4100), during(0, 5000), during(4000, 4100)], course).beyond).toBeGreaterThan(0);
  });
});

describe("an event explains no more than it grants", () => {
  test("a reset counter grants one capacity, once", () => {
    for (const kind of kinds) {
      const course = createHistory(kind, {}, { emptiedMs: [500] });
      const twice = [at(500, 10), at(500, 10)];
      expect(judgeOvershoot(twice, course).beyond).toBeLessThanOrEqual(0);
      expect(judgeOvershoot([...twice, at(500)], course).beyond).toBeGreaterThan(0);
      expect(judgeOvershoot([at(501, 10), at(501)], course).beyond).toBeGreaterThan(0);
    }
  });

  test("a lost ledger grants one allowance to what begins after it", () => {
    const course = createHistory("count", { allowance: 2 }, { lostMs: [100] });
    expect(judgeOvershoot([at(50, 13)], course).beyond).toBeGreaterThan(0);
    expect(judgeOvershoot([at(150, 14)], course).beyond).toBeLessThanOrEqual(0);
    expect(judgeOvershoot([at(150, 15)], course).beyond).toBeGreaterThan(0);
  });

  test("an edit grants what the new limit allows afterwards, and a lower one what it forgives", () => {
    const eras: Era[] = [
      { sinceMs: 0, limit: 10, burst: 10, allowance: 1 },
      { sinceMs: 1000, limit: 4, burst: 4, allowance: 0 },
    ];
    const arrival: Course = { kind: "arrival", perMs: 1000, originMs, eras };
    expect(exactMost(arrival, 1001, 2001)).toBeCloseTo(8, 1);
    expect(exactMost(arrival, 500, 1500)).toBeCloseTo(4 + 6 + 5 + 2, 1);
    const count: Course = { ...arrival, kind: "count" };
    expect(exactMost(count, 1001, 1999)).toBeCloseTo(4, 1);
    const sliding: Course = { ...arrival, kind: "sliding" };
    expect(exactMost(sliding, 1001, 1999)).toBeCloseTo(4, 1);
    expect(exactMost(sliding, 2001, 3500)).toBeCloseTo(4 + 4 * 0.5, 1);
    // Grants from before it are spent after it.
    expect(judgeOvershoot([at(1001, 5)], count).beyond).toBeLessThanOrEqual(0);
    expect(judgeOvershoot([at(1001, 6)], count).beyond).toBeGreaterThan(0);
  });

  test("a credit grants its amount", () => {
    const course = createHistory("count", {}, { credits: [{ atMs: 100, cost: 3 }] });
    expect(judgeOvershoot([at(50, 10), at(150, 3)], course).beyond).toBeLessThanOrEqual(0);
    expect(judgeOvershoot([at(50, 10), at(150, 4)], course).beyond).toBeGreaterThan(0);
  });
});

describe("the judge does not blame counters that decide exactly", () => {
  const step = fc.record({
    afterMs: fc.oneof(
      fc.constant(0),
      fc.nat(40),
      fc.nat(1500),
      fc.nat(800).map((eighths) => eighths / 8),
    ),
    does: fc.constantFrom("take", "take", "take", "take", "take", "charge", "credit", "reset", "edit"),
    cost: fc.integer({ min: 1, max: 8 }),
    limit: fc.integer({ min: 1, max: 20 }),
    burst: fc.integer({ min: 1, max: 25 }),
  });
  const createEra = (kind: JudgedKind, sinceMs: number, limit: number, burst: number): Era => ({
    sinceMs,
    limit,
    burst: kind === "arrival" ? burst : limit,
    allowance: 0,
  });

  test.each(kinds)("%s, under any requests, edits, charges and resets", (kind) => {
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 60 }),
        fc.constantFrom(100, 500, 999, 1000, 1900),
        (steps, perMs) => {
          const clock = new ManualClock(originMs, 0);
          const counters = new MemoryCounters({ clock });
          const eras = [createEra(kind, 0, 10, 5)];
          const createLimit = ({ limit, burst }: Era) =>
            compileTestLimit({ algorithm: algorithms[kind], windows: [testWindow(limit, perMs, burst)] });
          let limit = createLimit(eras[0]!);
          const admissions: Admission[] = [];
          const emptiedMs: number[] = [];
          const credits: { atMs: number; cost: number }[] = [];
          for (const { afterMs, does, cost, ...edited } of steps) {
            clock.advance(afterMs);
            const nowMs = clock.nowMs();
            if (does === "take" && counters.take([resolvedLimit(limit, "u", cost)]).taken) {
              admissions.push(at(nowMs, cost));
            } else if (does === "charge") counters.charge([resolvedLimit(limit, "u", cost)]);
            else if (does === "credit") {
              counters.charge([resolvedLimit(limit, "u", -cost)]);
              credits.push({ atMs: nowMs, cost });
            } else if (does === "reset") {
              counters.reset([resolvedLimit(limit, "u")]);
              emptiedMs.push(nowMs);
            } else if (does === "edit") {
              eras.push(createEra(kind, nowMs, edited.limit, edited.burst));
              limit = createLimit(eras.at(-1)!);
            }
          }
          const course: Course = { kind, perMs, originMs, eras, emptiedMs, credits };
          expect(judgeOvershoot(admissions, course).beyond).toBeLessThanOrEqual(0);
        },
      ),
      { numRuns: 300 },
    );
  });
});

test("the quick judge agrees with the exhaustive one", () => {
  const admission = fc
    .record({ fromMs: fc.nat(5000), tookMs: fc.oneof(fc.constant(0), fc.nat(30), fc.nat(3000)), cost: fc.nat(5) })
    .map(({ fromMs, tookMs, cost }): Admission => ({ fromMs, toMs: fromMs + tookMs, cost: cost + 1 }));
  fc.assert(
    fc.property(
      fc.constantFrom(...kinds),
      fc.array(admission, { minLength: 1, maxLength: 60 }),
      fc.constantFrom(100, 999, 1000, 2500),
      (kind, admissions, perMs) => {
        const course = createHistory(kind, { allowance: 2 }, { perMs });
        const quick = judgeSteadyOvershoot(admissions, course);
        // The exhaustive one ignores intervals without admissions.
        const patiently = Math.max(judgeOvershoot(admissions, course).beyond, -12);
        expect(Math.max(quick.beyond, -12)).toBeCloseTo(patiently, 6);
        expect(exactMost(course, quick.fromMs, quick.toMs)).toBeCloseTo(quick.exact, 6);
      },
    ),
    { numRuns: 500 },
  );
});
