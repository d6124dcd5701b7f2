import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Decision } from "./decision.ts";
import { findWaitMs, outageRetrySeconds, retryAfterSeconds } from "./retry-after.ts";

describe("retryAfterSeconds", () => {
  it.each([
    [1, 1],
    [250, 1],
    [1000, 1],
    [1001, 2],
    [1900, 2],
    [59_999, 60],
    [60_000, 60],
  ])("rounds %d ms up to %d s", (ms, seconds) => {
    expect(retryAfterSeconds(ms)).toBe(seconds);
  });

  it.each([0, -5, Number.NaN])("is never 0, not for %d ms either", (ms) => {
    expect(retryAfterSeconds(ms)).toBe(1);
    expect(retryAfterSeconds(ms, () => 0)).toBe(1);
  });

  it.each([
    [200, 2],
    [1_000, 2],
    [10_000, 11],
    [60_000, 66],
    [100_000, 110],
    [1_200_000, 1_210],
  ])("adds up to a tenth with a random source, at least one second and ten at most: %d ms", (ms, most) => {
    expect(retryAfterSeconds(ms, () => 0)).toBe(retryAfterSeconds(ms));
    expect(retryAfterSeconds(ms, () => 0.999_999)).toBe(most);
  });

  it("spreads clients evenly after an outage, over 1 to 5 seconds", () => {
    expect([0, 0.25, 0.5, 0.7, 0.999_999].map((value) => outageRetrySeconds(() => value))).toEqual([1, 2, 3, 4, 5]);
    expect(outageRetrySeconds()).toBe(1);
  });

  it("never comes out earlier than without jitter, nor later than twice that, whatever the source gives", () => {
    const random = fc.oneof(fc.double(), fc.constantFrom(-1, 1, 2, Number.NaN, Number.POSITIVE_INFINITY));
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), random, (ms, value) => {
        const base = retryAfterSeconds(ms);
        const jittered = retryAfterSeconds(ms, () => value);
        expect(Number.isInteger(jittered)).toBe(true);
        expect(base * 1000).toBeGreaterThanOrEqual(ms);
        expect(jittered).toBeGreaterThanOrEqual(base);
        expect(jittered).toBeLessThanOrEqual(2 * base);
      }),
    );
  });

  it("stays a number that every recipient can hold", () => {
    expect(retryAfterSeconds(Number.POSITIVE_INFINITY)).toBe(2_147_483_647);
    expect(retryAfterSeconds(1e300, () => 1)).toBe(2_147_483_647);
  });
});

describe("findWaitMs", () => {
  const wait = (fields: Partial<Decision>): number | undefined =>
    findWaitMs({ allowed: false, reason: "over_limit", retryAfterMs: 1200, ...fields } as Decision);

  it("is the exact wait of a denial that passes later", () => {
    expect(wait({})).toBe(1200);
    expect(wait({ reason: "blocked" })).toBe(1200);
    expect(wait({ reason: "degraded" })).toBe(1200);
  });

  it.each<Partial<Decision>>([
    { allowed: true },
    { reason: "never_fits" },
    { reason: "deny_list" },
    { reason: "missing_dimension" },
    { retryAfterMs: undefined },
    { retryAfterMs: Number.POSITIVE_INFINITY },
  ])("is absent for %j, because waiting does not help", (fields) => {
    expect(wait(fields)).toBeUndefined();
  });
});
