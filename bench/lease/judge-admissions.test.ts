import { expect, it } from "vitest";
import { type Admissions, worstOvershoot } from "./judge-admissions.ts";

/** Admissions in milliseconds, answered after a delay. */
function admittedAt(askedMs: readonly number[], laterMs: readonly number[] = []): Admissions {
  return {
    askedUs: Float64Array.from(askedMs, (ms) => ms * 1000),
    answeredUs: Float64Array.from(askedMs, (ms, i) => (ms + (laterMs[i] ?? 0)) * 1000),
  };
}

/** Examines every interval. */
function worstByLooking({ askedUs, answeredUs }: Admissions, capacity: number, perSecond: number): number {
  let worst = Number.NEGATIVE_INFINITY;
  for (const from of askedUs) {
    for (const to of answeredUs) {
      const within = askedUs.filter((us, i) => us >= from && answeredUs[i]! <= to).length;
      if (within > 0) worst = Math.max(worst, within - capacity - ((to - from) * perSecond) / 1e6);
    }
  }
  return worst;
}

it("finds no excess in a burst and its refill", () => {
  expect(worstOvershoot(admittedAt([0, 0, 0, 100, 200, 300]), 3, 10)).toBe(0);
});

it("finds the one admission too many in the middle of calm", () => {
  expect(worstOvershoot(admittedAt([0, 5000, 5000, 5000, 5000, 5050, 9000]), 3, 10)).toBe(1.5);
});

it("does not count admissions that may lie before the interval, or after it", () => {
  const late = admittedAt([0, 0, 0, 90], [0, 0, 0, 20]);
  expect(worstOvershoot(late, 3, 10)).toBe(0);
  expect(worstOvershoot(admittedAt([0, 0, 0, 90]), 3, 10)).toBeCloseTo(0.1);
});

it("agrees with examining every interval", () => {
  let state = 7;
  const random = (): number => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
  for (let run = 0; run < 200; run++) {
    const count = 1 + Math.floor(random() * 30);
    const asked = Array.from({ length: count }, () => Math.floor(random() * 200));
    const admissions = admittedAt(
      asked,
      asked.map(() => Math.floor(random() * 20)),
    );
    const rate = 1 + random() * 200;
    expect(worstOvershoot(admissions, 3, rate)).toBeCloseTo(worstByLooking(admissions, 3, rate), 6);
  }
});
