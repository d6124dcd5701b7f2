import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readShape } from "../shape/shape.ts";
import { duration, parseDuration, renderDuration } from "./parse-duration.ts";

describe("parseDuration", () => {
  it.each([
    ["500ms", 500],
    ["1s", 1_000],
    ["1.5m", 90_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    ["1w", 604_800_000],
    ["s", 1_000],
    ["ms", 1],
    ["m", 60_000],
    ["second", 1_000],
    ["minute", 60_000],
    ["hour", 3_600_000],
    ["day", 86_400_000],
    ["week", 604_800_000],
    ["10 seconds", 10_000],
    ["30min", 1_800_000],
    ["1.9s", 1_900],
    ["0.001s", 1],
    [" 5s ", 5_000],
  ])("reads %s", (written, ms) => {
    expect(parseDuration(written)).toBe(ms);
  });

  it("reads decimals exactly even if floating point would not", () => {
    expect(1.001 * 1000).not.toBe(1001);
    expect(parseDuration("1.001s")).toBe(1001);
    expect(parseDuration("4.35m")).toBe(261_000);
  });

  it.each(["0.5ms", "0.0001s", "1.00001m"])("refuses %s, a fraction of a millisecond", (written) => {
    expect(() => parseDuration(written)).toThrow("must be whole milliseconds");
  });

  it.each(["", "s5", "5", "1h30m", "-1s", "1e3s", "1..5s", ".5s", "five seconds", null, {}, true])(
    "does not take %j for a duration",
    (written) => {
      expect(() => parseDuration(written)).toThrow("must be a duration");
    },
  );

  it.each(["5M", "5y", "1month", "2constructor"])("knows no such unit as in %s", (written) => {
    expect(() => parseDuration(written)).toThrow(/unknown unit|must be a duration/);
  });

  it("explains how to write a number with its unit", () => {
    expect(() => parseDuration(60)).toThrow('is the number 60; write "60s" or "60ms"');
  });

  it("keeps to its bounds", () => {
    const result = readShape(duration({ minMs: 10, maxMs: 60_000 }), "2m");
    expect(result.ok ? [] : result.problems.map(({ message }) => message)).toEqual([
      'must last from 10ms to 1m, but is "2m"',
    ]);
    expect(readShape(duration({ minMs: 10, maxMs: 60_000 }), "1m").ok).toBe(true);
    expect(readShape(duration({ maxMs: 60_000 }), "0s").ok).toBe(false);
  });
});

describe("renderDuration", () => {
  it.each([
    [1, "1ms"],
    [1_500, "1500ms"],
    [90_000, "90s"],
    [86_400_000, "1d"],
    [604_800_000, "1w"],
    [0, "0ms"],
  ])("writes %i ms as %s", (ms, written) => {
    expect(renderDuration(ms)).toBe(written);
  });

  it("writes what parseDuration reads back", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 8_640_000_000_000 }), (ms) => {
        expect(parseDuration(renderDuration(ms))).toBe(ms);
      }),
    );
  });
});
