import fc from "fast-check";
import { ManualClock } from "sluice";
import { describe, expect, it } from "vitest";
import { RetryBudget } from "./retry-budget.ts";

describe("a retry budget", () => {
  it("has a floor for callers with few requests, which comes back with time", () => {
    const clock = new ManualClock();
    const budget = new RetryBudget({ clock, perMinute: 2, share: 0 });
    expect([budget.spend(), budget.spend(), budget.spend()]).toEqual([true, true, false]);
    clock.advance(29_999);
    expect(budget.spend()).toBe(false);
    clock.advance(1);
    expect(budget.spend()).toBe(true);
  });

  it("earns a share with each request", () => {
    const budget = new RetryBudget({ clock: new ManualClock(), perMinute: 0, share: 0.1 });
    for (let request = 0; request < 9; request++) budget.earn();
    expect(budget.spend()).toBe(false);
    budget.earn();
    expect([budget.spend(), budget.spend()]).toEqual([true, false]);
  });

  it("lets no more retries through than its formula, whatever happens", () => {
    const steps = fc.array(fc.oneof(fc.constant("earn"), fc.constant("spend"), fc.nat(20_000)), { maxLength: 300 });
    fc.assert(
      fc.property(
        steps,
        fc.integer({ min: 0, max: 30 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (script, perMinute, share) => {
          const clock = new ManualClock();
          const budget = new RetryBudget({ clock, perMinute, share });
          let requests = 0;
          let retries = 0;
          for (const step of script) {
            if (typeof step === "number") clock.advance(step);
            else if (step === "earn") {
              budget.earn();
              requests += 1;
            } else if (budget.spend()) retries += 1;
            const most = Math.max(10, perMinute) + share * requests + (perMinute * clock.nowMs()) / 60_000;
            expect(retries).toBeLessThanOrEqual(most + 1e-6);
          }
        },
      ),
    );
  });

  it("has options that are checked", () => {
    expect(() => new RetryBudget({ share: -1 })).toThrow(/share/);
    expect(() => new RetryBudget({ perMinute: Number.NaN })).toThrow(/perMinute/);
  });
});
