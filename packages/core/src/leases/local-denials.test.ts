import { describe, expect, it } from "vitest";
import type { LimitOutcome, ResolvedLimit } from "../counters/counter-store.ts";
import { compileTestLimit, resolvedLimit, testWindow } from "../testing/test-limit.ts";
import { LocalDenials } from "./local-denials.ts";

const tenPerSecond = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 1000)] }), "u");

function denial({ windows }: ResolvedLimit, retryAfterMs: number): LimitOutcome {
  return {
    fits: "later",
    window: windows[0]!,
    remaining: 0,
    windowRemaining: 0,
    retryAfterMs,
    resetAfterMs: 1000,
    queuePosition: 0,
    moreAfterMs: retryAfterMs,
    queueDelayMs: 0,
  };
}

function noted(limit: ResolvedLimit, retryAfterMs: number, maxMs = 1000): LocalDenials {
  const denials = new LocalDenials(maxMs);
  denials.note(1, 2, limit, denial(limit, retryAfterMs), 5000, 1_000_000);
  return denials;
}

describe("denials that are repeated here", () => {
  it("last until the retry time, counted from before the centre was asked", () => {
    const denials = noted(tenPerSecond, 100);
    expect(denials.find(1, 2, tenPerSecond.windows, 1, 5099)?.outcome.retryAfterMs).toBe(1);
    expect(denials.find(1, 2, tenPerSecond.windows, 1, 5040)).toMatchObject({
      atMs: 1_000_040,
      outcome: { fits: "later", retryAfterMs: 60, resetAfterMs: 960 },
    });
    expect(denials.find(1, 2, tenPerSecond.windows, 1, 5100)).toBeUndefined();
  });

  it("last for a second at most, and report the whole wait", () => {
    const denials = noted(tenPerSecond, 60_000);
    expect(denials.find(1, 2, tenPerSecond.windows, 1, 5999)?.outcome.retryAfterMs).toBe(59_001);
    expect(denials.find(1, 2, tenPerSecond.windows, 1, 6000)).toBeUndefined();
    expect(noted(tenPerSecond, 60_000, 0).find(1, 2, tenPerSecond.windows, 1, 5000)).toBeUndefined();
  });

  it("are for this counter, and for costs at least as large", () => {
    const three = { ...tenPerSecond, cost: 3 };
    const denials = noted(three, 100);
    expect(denials.find(1, 2, three.windows, 2, 5000)).toBeUndefined();
    expect(denials.find(1, 3, three.windows, 3, 5000)).toBeUndefined();
    expect(denials.find(2, 2, three.windows, 3, 5000)).toBeUndefined();
    expect(denials.find(1, 2, three.windows, 3, 5000)?.outcome.retryAfterMs).toBe(100);
    expect(denials.find(1, 2, three.windows, 5, 5000)?.outcome.retryAfterMs).toBe(300);
    // That it never fits is another answer.
    expect(denials.find(1, 2, three.windows, 11, 5000)).toBeUndefined();
  });

  it("report the same wait for every cost if the subject is blocked", () => {
    const denials = new LocalDenials(1000);
    denials.note(1, 2, tenPerSecond, { ...denial(tenPerSecond, 700), fits: "blocked" }, 5000, 1_000_000);
    expect(denials.find(1, 2, tenPerSecond.windows, 5, 5000)?.outcome).toMatchObject({
      fits: "blocked",
      retryAfterMs: 700,
    });
  });

  it("do not outlast the policies or the tier that denied", () => {
    const other = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 1000)] });
    expect(noted(tenPerSecond, 100).find(1, 2, other.windows, 1, 5000)).toBeUndefined();
  });

  it("end a millisecond sooner if a bucket is too shallow to hold what flows in meanwhile", () => {
    const windows = [testWindow(10_000, 1000, 1)];
    const shallow = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows }), "u");
    expect(noted(shallow, 1).find(1, 2, shallow.windows, 1, 5000)).toBeUndefined();
    expect(noted(shallow, 3).find(1, 2, shallow.windows, 1, 5001)).toBeDefined();
    expect(noted(shallow, 3).find(1, 2, shallow.windows, 1, 5002)).toBeUndefined();
  });

  it("are forgotten on request", () => {
    const denials = noted(tenPerSecond, 100);
    denials.forget(1, 3);
    expect(denials.find(1, 2, tenPerSecond.windows, 1, 5000)).toBeDefined();
    denials.forget(1, 2);
    expect(denials.find(1, 2, tenPerSecond.windows, 1, 5000)).toBeUndefined();
  });

  it("are none while nothing was denied lately", () => {
    expect(new LocalDenials(1000).isEmpty(0)).toBe(true);
    const denials = noted(tenPerSecond, 100);
    expect(denials.isEmpty(5099)).toBe(false);
    expect(denials.isEmpty(5100)).toBe(true);
  });
});
