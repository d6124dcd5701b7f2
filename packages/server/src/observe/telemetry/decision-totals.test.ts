import { expect, it } from "vitest";
import { addTotals, type DecisionTotals, ratesBetween } from "./decision-totals.ts";

const none: DecisionTotals = { allowed: 0, denied: 0, degraded: 0, shadowDenied: 0, denials: {}, durations: [] };

it("turns totals into rates, and histograms into percentiles", () => {
  // 90 up to 10 µs, 10 up to 25 µs.
  const now = {
    ...none,
    allowed: 80,
    denied: 20,
    degraded: 4,
    denials: { over_limit: 20, blocked: 0 },
    durations: [90, 10],
  };
  const rates = ratesBetween(none, now, 2);
  expect(rates).toMatchObject({ decided: 50, allowed: 40, denied: 10, degraded: 2, deniedBy: { over_limit: 10 } });
  expect(rates.latencyMs!.p50).toBeCloseTo(0.01 * (50 / 90), 6);
  expect(rates.latencyMs!.p99).toBeCloseTo(0.01 + 0.015 * 0.9, 6);
  expect(rates.deniedBy).not.toHaveProperty("blocked");
});

it("has no latency without decisions, and no rate below 0 when a policy is gone", () => {
  expect(ratesBetween({ ...none, allowed: 5 }, { ...none, allowed: 3 }, 1)).toMatchObject({
    decided: 0,
    latencyMs: undefined,
  });
});

it("adds up processes", () => {
  const one = { ...none, allowed: 1, denials: { over_limit: 1 }, durations: [1, 2] };
  expect(addTotals(one, addTotals(one, none))).toMatchObject({
    allowed: 2,
    denials: { over_limit: 2 },
    durations: [2, 4],
  });
});
