import { createLimiter, type Decision, ManualClock, MemoryCounters } from "sluice";
import { describe, expect, it } from "vitest";
import { leasedDecision } from "./leased-decision.ts";

const request = { dimensions: { user: "ada" } };
const ask = { holdMs: 60_000, settled: undefined };

/** A limiter, and the same limiter behind a lease of this many units, granted at 0 ms. */
async function grant(algorithm: string, window: string, want: number) {
  const policies = {
    policies: [{ id: "api", max_overshoot: 1, limits: [{ by: ["user"], algorithm, windows: [window] }] }],
  };
  const limiters = [0, 1].map(() => {
    const clock = new ManualClock();
    return { clock, limiter: createLimiter({ policies, clock, counters: new MemoryCounters({ clock }) }) };
  });
  const [exact, centre] = limiters as [(typeof limiters)[0], (typeof limiters)[0]];
  const { granted, decision } = await centre.limiter.lease(request, { ...ask, want });
  expect(granted).toBe(want);
  return { exact, told: { decision, atMs: 0 }, decision };
}

describe("a leased decision", () => {
  it("has the place in a leaky bucket's queue that the check would have had at the counters", async () => {
    const { exact, told } = await grant("leaky_bucket", "100/s", 40);
    const leased: Decision["queue"][] = [];
    const expected: Decision["queue"][] = [];
    for (let spent = 1; spent <= 40; spent++) {
      leased.push(leasedDecision(told, 1, 40 - spent, 0).queue);
      expected.push((await exact.limiter.check(request)).queue);
    }
    expect(leased).toEqual(expected);
    expect(leased.at(-1)).toEqual({ position: 40, delayMs: 390 });
  });

  it.each([
    [900, 100, 1_000],
    [1_000, 0, 1_000],
    [21_000.5, 0, 21_001],
  ])("is never reset in the past: after %d ms in %d", async (sinceMs, resetAfterMs, resetsAfterMs) => {
    const { told, decision } = await grant("fixed_window", "100/s", 40);
    const startMs = decision.resetAtMs! - decision.resetAfterMs!;
    expect(decision.resetAfterMs).toBe(1_000);
    expect(leasedDecision(told, 1, 39, sinceMs)).toMatchObject({ resetAfterMs, resetAtMs: startMs + resetsAfterMs });
  });

  it("reports no more than the limit, in whole units", async () => {
    const { decision } = await grant("token_bucket", "100/s", 40);
    const told = { decision: { ...decision, limit: 100.5, remaining: 90, used: 10 }, atMs: 0 };
    expect(leasedDecision(told, 1, 30, 0)).toMatchObject({ limit: 100.5, remaining: 100, used: 0 });
    expect(leasedDecision(told, 1, 3, 0)).toMatchObject({ remaining: 93, used: 7 });
  });
});
