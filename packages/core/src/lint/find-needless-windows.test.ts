import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseWindow } from "../policy/parse-window.ts";
import type { Algorithm, Window } from "../policy/policy.ts";
import { findNeedlessWindows } from "./find-needless-windows.ts";

function needless(algorithm: Algorithm, ...windows: string[]): string[] {
  const parsed = windows.map((window) => parseWindow(window));
  return findNeedlessWindows(parsed, algorithm).map(({ index }) => windows[index]!);
}

describe("findNeedlessWindows", () => {
  it.each<[Algorithm, string[], string[]]>([
    ["gcra", ["100/s", "10000/m"], ["10000/m"]],
    ["gcra", ["100/s burst 200", "3000/m", "100k/h"], []],
    ["token_bucket", ["100/s burst 200", "100/s burst 50"], ["100/s burst 200"]],
    ["gcra", ["100/s burst 10", "10/s burst 100"], []],
    ["leaky_bucket", ["100 once", "200/s"], ["200/s"]],
    ["gcra", ["100 once", "50/s"], []],
    ["gcra", ["10/s", "10/s", "10/s"], ["10/s", "10/s"]],
    ["fixed_window", ["100/s", "6000/m"], ["6000/m"]],
    ["fixed_window", ["100/s", "5999/m"], []],
    ["fixed_window", ["100/m", "100/s"], ["100/s"]],
    ["fixed_window", ["10/7s", "29/10s"], []],
    ["fixed_window", ["10/7s", "30/10s"], ["30/10s"]],
    ["fixed_window", ["10/day in UTC", "310/month in UTC"], ["310/month in UTC"]],
    ["fixed_window", ["10/day in UTC", "309/month in UTC"], []],
    ["fixed_window", ["10/day in UTC", "1000/month in Europe/Berlin"], []],
    ["fixed_window", ["100/month in UTC", "100/day in UTC"], ["100/day in UTC"]],
    ["sliding_window", ["100/s", "10000/m"], ["10000/m"]],
    ["sliding_window", ["100/s", "6000/m"], []],
    ["sliding_log", ["100/s", "6000/m"], ["6000/m"]],
    ["sliding_log", ["100/s", "5999/m"], []],
    ["sliding_log", ["10 once", "5/s"], []],
  ])("among %s %j finds %j", (algorithm, windows, expected) => {
    expect(needless(algorithm, ...windows)).toEqual(expected);
  });

  const algorithms = ["gcra", "fixed_window", "sliding_window", "sliding_log"] as const;

  it.each(algorithms)("never finds a %s that would deny although the stricter one allows", (algorithm) => {
    const window = fc
      .record({ limit: fc.integer({ min: 1, max: 8 }), ms: fc.integer({ min: 1, max: 12 }) })
      .map(({ limit, ms }) => parseWindow(`${limit}/${ms}ms`));
    const waits = fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(window, window, waits, (strict, loose, between) => {
        fc.pre(findNeedlessWindows([strict, loose], algorithm).some(({ index }) => index === 1));
        const [first, second] = [simulate(strict, algorithm), simulate(loose, algorithm)];
        let now = 0;
        for (const wait of between) {
          now += wait;
          if (!first.hasRoom(now)) continue;
          expect(second.hasRoom(now)).toBe(true);
          first.take(now);
          second.take(now);
        }
      }),
      { numRuns: 300 },
    );
  });
});

/** A window simulated the simple way: from everything that it ever let through. */
function simulate(window: Window, algorithm: Algorithm) {
  const length = window.per.kind === "ms" ? window.per.ms : Number.POSITIVE_INFINITY;
  const taken: number[] = [];
  const countFrom = (from: number, to: number) => taken.filter((at) => at >= from && at < to).length;
  const used = (now: number): number => {
    const start = now - (now % length);
    if (algorithm === "fixed_window") return countFrom(start, start + length);
    if (algorithm === "sliding_log") return countFrom(now - length + 1, now + 1);
    if (algorithm === "sliding_window")
      return countFrom(start, start + length) + countFrom(start - length, start) * (1 - (now - start) / length);
    let level = 0;
    for (const [index, at] of taken.entries()) {
      const next = taken[index + 1] ?? now;
      level = Math.max(0, level + 1 - ((next - at) * window.limit) / length);
    }
    return level;
  };
  return {
    hasRoom: (now: number) => used(now) + 1 <= window.burst + 1e-9,
    take: (now: number) => taken.push(now),
  };
}
