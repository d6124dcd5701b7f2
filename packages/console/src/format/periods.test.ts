import { describe, expect, it } from "vitest";
import { fillPeriods, perSecond, sum, wholePeriods } from "./periods.ts";

const period = (start_ms: number, allowed: number, denied: number) => ({
  start_ms,
  allowed,
  denied,
  decided: allowed + denied,
  degraded: 1,
  shadow_denied: 0,
  cost: allowed,
});

describe("periods of usage", () => {
  it("have a zero for each that the server left out, and leave out what is not in the range", () => {
    const columns = fillPeriods(
      [period(60_000, 5, 1), period(180_000, 7, 0), period(240_000, 9, 9)],
      0,
      240_000,
      60_000,
    );
    expect(columns.times).toEqual([0, 60_000, 120_000, 180_000]);
    expect(columns.allowed).toEqual([0, 5, 0, 7]);
    expect(columns.denied).toEqual([0, 1, 0, 0]);
    expect(sum(columns.degraded)).toBe(2);
  });

  it("are added up if several begin at once, as those of several policies do", () => {
    expect(fillPeriods([period(0, 5, 1), period(0, 7, 2)], 0, 60_000, 60_000)).toMatchObject({
      allowed: [12],
      denied: [3],
    });
  });

  it("count per second, the last one by the part of it that is stored, if that is a minute", () => {
    const hour = 3_600_000;
    expect(perSecond([7_200, 600], [0, hour], hour, hour + 310_000)).toEqual([2, 2]);
    expect(perSecond([60, 120, 5], [0, 60_000, 120_000], 60_000, 130_000)).toEqual([1, 2, null]);
    expect(perSecond([60, 120], [0, 60_000], 60_000, 125_000)).toEqual([1, null]);
  });

  it("are unknown until they are over and stored", () => {
    expect(wholePeriods([60, 120, 5], [0, 60_000, 120_000], 60_000, 130_000)).toEqual([60, 120, null]);
    expect(wholePeriods([60, 120], [0, 60_000], 60_000, 129_999)).toEqual([60, null]);
  });
});
