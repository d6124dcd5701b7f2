import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { divideWindow } from "./divide-window.ts";
import { findMisfits, parseWindow } from "./parse-window.ts";
import { algorithms, type Window } from "./policy.ts";
import { renderWindow } from "./render-window.ts";

describe("a share of a window", () => {
  it.each([
    ["100/s burst 200", "gcra", 0.5, "50/s burst 100"],
    ["100/s burst 200", "token_bucket", 0.29, "29/s burst 58"],
    ["16.67/s", "leaky_bucket", 0.5, "8.335/s"],
    ["1/m", "gcra", 0.25, "0.25/m"],
    ["1/m burst 3", "gcra", 0.25, "0.25/m"],
    ["3/s", "gcra", 1, "3/s"],
    ["5/m", "fixed_window", 0.5, "2/m"],
    ["100/m", "sliding_window", 0.29, "29/m"],
    ["1/m", "sliding_log", 0.5, "1/m"],
    ["9 once", "gcra", 0.5, "4 once"],
    ["1 once", "gcra", 0.1, "1 once"],
    ["7/day in UTC", "fixed_window", 0.5, "3/day in UTC"],
    ["0/s", "gcra", 0.5, "0/s"],
    ["0/s", "fixed_window", 0.5, "0/s"],
  ] as const)("%s under %s by %d is %s", (written, algorithm, share, expected) => {
    expect(renderWindow(divideWindow(parseWindow(written, algorithm), algorithm, share))).toBe(expected);
  });

  it("is half by default, and keeps its name", () => {
    const window = parseWindow({ limit: 10, per: "1s", name: "steady" });
    expect(divideWindow(window, "gcra")).toEqual({ ...window, limit: 5, burst: 5 });
  });

  it("of a window without inflow is still a one-off quota", () => {
    const quota: Window = { limit: 0, per: { kind: "ms", ms: 1000 }, burst: 9 };
    expect(divideWindow(quota, "gcra", 0.5)).toEqual({ ...quota, burst: 4 });
  });

  it("flows out again within 100 years, however small it is", () => {
    const { limit, burst } = divideWindow(parseWindow("1/3650d"), "gcra", 1e-9);
    expect((burst * 3650) / limit).toBeCloseTo(36_525);
  });

  it("is never larger than the window, lets a cost of 1 through, and suits its algorithm", () => {
    const window = fc.record({
      limit: fc.oneof(fc.integer({ min: 1, max: 1_000_000 }), fc.double({ min: 1, max: 1_000, noNaN: true })),
      per: fc.constantFrom("1ms", "1s", "1h", "3650d"),
    });
    const share = fc.double({ min: 0, max: 1, minExcluded: true, noNaN: true });
    fc.assert(
      fc.property(window, fc.constantFrom(...algorithms), share, ({ limit, per }, algorithm, by) => {
        const most = per === "1ms" ? Math.min(limit, 10_000) : limit;
        const fractions = /gcra|bucket/.test(algorithm);
        const whole = parseWindow({ limit: fractions ? most : Math.floor(most), per }, algorithm);
        const part = divideWindow(whole, algorithm, by);
        expect(part.burst).toBeGreaterThanOrEqual(1);
        expect(part.burst).toBeLessThanOrEqual(whole.burst);
        expect(part.limit).toBeGreaterThan(0);
        expect(part.limit).toBeLessThanOrEqual(whole.limit);
        expect(findMisfits(part, { algorithm })).toEqual([]);
        expect(divideWindow(whole, algorithm, 1)).toEqual(whole);
      }),
    );
  });
});
