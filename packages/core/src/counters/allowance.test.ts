import { expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { compileTestLimit, conversationStartMs, resolvedLimit, testWindow } from "../testing/index.ts";
import { leaseAllowance, maxUnits } from "./allowance.ts";
import { MemoryCounters } from "./memory-counters.ts";

function ofLimits(maxOvershoot: number, ...limits: number[]): number {
  const windows = limits.map((limit, i) => testWindow(limit, 1000 * 60 ** i));
  return leaseAllowance(compiled(maxOvershoot, windows));
}

function compiled(maxOvershoot: number, windows: ReturnType<typeof testWindow>[]): ReturnType<typeof resolvedLimit> {
  return resolvedLimit(compileTestLimit({ algorithm: "gcra", windows, maxOvershoot }), "u");
}

it("an allowance is a share of the smallest limit, rounded down, and not by binary fractions", () => {
  expect(ofLimits(0.01, 1000)).toBe(10);
  expect(ofLimits(0.01, 1999, 100_000)).toBe(19);
  expect(ofLimits(0.29, 100)).toBe(29);
  expect(ofLimits(1, 0.5)).toBe(0);
});

it("an allowance is never more than one call can carry: all of it can be kept, returned and asked for", () => {
  expect(ofLimits(1, 1e12)).toBe(maxUnits);
  const clock = new ManualClock(conversationStartMs);
  const centre = new MemoryCounters({ clock });
  const limit = compiled(1, [testWindow(1e12, 1000)]);
  const first = centre.lease([limit], { want: maxUnits, holdMs: 1000 });
  const settled = { epoch: first.epoch, spent: 0, kept: first.granted, returned: 0 };
  const second = centre.lease([limit], { want: maxUnits, holdMs: 1000, settled });
  expect(second.unspent).toBe(first.granted + second.granted);
  expect(second.unspent).toBeLessThanOrEqual(maxUnits);
});
