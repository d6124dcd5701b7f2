import { describe, expect, it } from "vitest";
import { compareWithWindow, lookBackMs } from "./window-usage.ts";

const minute = 60_000;
const times = [0, 1, 2, 3, 4].map((at) => at * minute);
const costs = [10, 20, 30, 0, 5];

describe("usage against a window", () => {
  it("is per period if the window is shorter, against what it allows in a period", () => {
    const usage = compareWithWindow({ limit: 2, per: { kind: "ms", ms: 1_000 } }, times, costs, minute);
    expect(usage).toMatchObject({ values: costs, capacity: 120, isPerPeriod: true });
    expect(lookBackMs({ per: { kind: "ms", ms: 1_000 } }, minute)).toBe(0);
  });

  it("is what was charged in the time that the window spans, if that is longer", () => {
    const usage = compareWithWindow({ limit: 100, per: { kind: "ms", ms: 3 * minute } }, times, costs, minute);
    expect(usage).toMatchObject({ values: [10, 30, 60, 50, 35], capacity: 100, isPerPeriod: false });
    expect(lookBackMs({ per: { kind: "ms", ms: 3 * minute } }, minute)).toBe(3 * minute);
  });

  it("begins again with each day of a calendar window, in its time zone", () => {
    const midnight = Date.parse("2026-11-17T23:00:00Z");
    const around = [-2, -1, 0, 1, 2].map((at) => midnight + at * minute);
    const per = { kind: "calendar", unit: "day", timeZone: "Europe/Berlin" } as const;
    expect(compareWithWindow({ limit: 50, per }, around, costs, minute)).toMatchObject({
      values: [10, 30, 30, 30, 35],
      capacity: 50,
    });
  });

  it("only grows for a quota that does not refill", () => {
    expect(compareWithWindow({ limit: 50, per: { kind: "never" } }, times, costs, minute).values).toEqual([
      10, 30, 60, 60, 65,
    ]);
  });
});
