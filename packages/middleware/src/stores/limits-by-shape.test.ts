import { ManualClock, MemoryCounters, StoreUnavailable } from "sluice";
import type { StoreUnavailableReason } from "sluice/store";
import { failingCounters } from "sluice/testing";
import { describe, expect, it, vi } from "vitest";
import { LimitsByShape } from "./limits-by-shape.ts";

function open(clock: ManualClock = new ManualClock()): LimitsByShape {
  return new LimitsByShape("test", { counters: new MemoryCounters({ clock }) });
}

describe("limits by shape", () => {
  it("keeps a limiter for each of the hundred shapes used last", () => {
    const limits = open();
    const often = { windowMs: 60_000, limit: 1 };
    const once = { windowMs: 60_000, limit: 2 };
    const [oftenLimiter, onceLimiter] = [limits.limiterFor(often), limits.limiterFor(once)];
    for (let limit = 3; limit <= 101; limit++) {
      limits.limiterFor({ windowMs: 60_000, limit });
      expect(limits.limiterFor(often)).toBe(oftenLimiter);
    }
    expect(limits.limiterFor(once)).not.toBe(onceLimiter);
  });

  it("keeps a key's usage, whatever its limit becomes and however many limits there are", async () => {
    const limits = open();
    for (let limit = 1; limit <= 500; limit++) {
      expect(await limits.hit("key", { windowMs: 3_600_000, limit })).toMatchObject({ allowed: true, used: limit });
    }
    expect(await limits.hit("key", { windowMs: 3_600_000, limit: 500 })).toMatchObject({ allowed: false });
    expect(await limits.hit("key", { windowMs: 1_800_000, limit: 1 })).toMatchObject({ allowed: true });
  });

  it("refuses windows above ten years and blocks above a year by name, and does not cut them", () => {
    const limits = open();
    const dayMs = 24 * 60 * 60 * 1000;
    expect(limits.hit("key", { windowMs: 3653 * dayMs, limit: 1 })).toMatchObject({ allowed: true });
    expect(() => limits.hit("key", { windowMs: 3653 * dayMs + 1, limit: 1 })).toThrow(
      /^windowMs must be at most 3653 days/,
    );
    expect(() => limits.hit("key", { windowMs: dayMs, limit: 1, blockForMs: 367 * dayMs })).toThrow(
      /^blockForMs must be at most 366 days/,
    );
  });

  it("empties a key and leaves its block in place", async () => {
    const clock = new ManualClock();
    const limits = open(clock);
    const shape = { windowMs: 3_600_000, limit: 250_000, blockable: true };
    for (const cost of [100_000, 100_000, 50_000]) await limits.hit("key", shape, { cost });
    await limits.block("key", shape, 1000);
    expect(await limits.empty("key", shape, 250_000)).toBe(true);
    expect(await limits.hit("key", shape)).toMatchObject({ allowed: false, reason: "blocked" });
    clock.advance(1000);
    expect(await limits.hit("key", shape)).toMatchObject({ allowed: true, used: 1 });
  });

  it("clamps limits beyond what policies allow", async () => {
    const limits = open();
    for (const windowMs of [0, 0.3, 1, Number.POSITIVE_INFINITY]) {
      for (const limit of [1e300, Number.POSITIVE_INFINITY]) {
        expect(await limits.hit("key", { windowMs, limit })).toMatchObject({ allowed: true });
      }
    }
    expect(await limits.hit("key", { windowMs: 1000, limit: -3 })).toMatchObject({ allowed: false });
    expect(await limits.hit("key", { windowMs: 1000, limit: 1.9 })).toMatchObject({ allowed: true, limit: 1 });
    expect(() => limits.hit("key", { windowMs: Number.NaN, limit: 1 })).toThrow(/^windowMs must be/);
    expect(() => limits.hit("key", { windowMs: -1, limit: 1 })).toThrow(/^windowMs must be/);
    expect(() => limits.hit("key", { windowMs: 1, limit: Number.NaN })).toThrow(/^limit must be/);
    expect(() => limits.hit("key", { windowMs: 1, limit: 1, blockForMs: -1 })).toThrow(/^blockForMs must be/);
  });

  it("leaves the warning of an outage to counters that report their outages", async () => {
    const warned = async (reportsOutages: boolean, fault: StoreUnavailableReason): Promise<number> => {
      const counters = { ...failingCounters(() => new StoreUnavailable(fault)), reportsOutages };
      const warnings = vi.spyOn(process, "emitWarning").mockReturnValue();
      const limits = new LimitsByShape("test", { counters, prefix: "p" });
      expect(await limits.hit("key", { windowMs: 1000, limit: 1 })).toMatchObject({ allowed: true, degraded: fault });
      const count = warnings.mock.calls.length;
      warnings.mockRestore();
      return count;
    };
    expect(await warned(true, "storage_unavailable")).toBe(0);
    // They do not report reasons that only the caller sees, nor a check that timed out.
    expect(await warned(true, "storage_full")).toBe(1);
    // There is one warning a minute.
    const later = vi.spyOn(performance, "now").mockReturnValue(performance.now() + 120_000);
    expect(await warned(true, "storage_timeout")).toBe(1);
    later.mockRestore();
  });

  it("blocks after a denial and by hand, and a reset lifts it", async () => {
    const clock = new ManualClock();
    const limits = open(clock);
    const shape = { windowMs: 1000, limit: 1, blockForMs: 5000, blockable: true };
    await limits.hit("key", shape);
    expect(await limits.hit("key", shape)).toMatchObject({ allowed: false, retryAfterMs: 5000 });
    clock.advance(4999);
    expect(await limits.hit("key", shape)).toMatchObject({ allowed: false, reason: "blocked" });
    clock.advance(1);
    expect(await limits.hit("key", shape)).toMatchObject({ allowed: true });
    expect(await limits.block("key", shape, 1e15)).toBe(true);
    expect(await limits.hit("key", shape)).toMatchObject({ reason: "blocked", retryAfterMs: 30 * 24 * 60 * 60 * 1000 });
    expect(await limits.reset("key", shape)).toBe(true);
    expect(await limits.hit("key", shape)).toMatchObject({ allowed: true });
  });
});
