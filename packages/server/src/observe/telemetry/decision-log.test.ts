import { createLimiter } from "sluice";
import { describe, expect, it } from "vitest";
import { createDecisionLog, type DecisionLogOptions } from "./decision-log.ts";

const policies = { policies: [{ id: "p", limits: [{ by: ["user"], windows: ["2/h"] }] }] };

function started(options: Partial<DecisionLogOptions> = {}) {
  const lines: (Readonly<Record<string, unknown>> & { readonly event: string })[] = [];
  const limiter = createLimiter({ policies });
  const observe = createDecisionLog({
    log: { debug: (event, fields) => lines.push({ ...fields, event }) },
    level: "debug",
    sample: 1,
    nowMs: () => 0,
    ...options,
  });
  return {
    lines,
    check(user = "ann"): void {
      const request = { dimensions: { user } };
      observe?.(request, limiter.checkSync(request));
    },
  };
}

describe("the log of decisions", () => {
  it("says who was allowed or denied, by which policy, and how full the counter is", () => {
    const { lines, check } = started();
    for (let i = 0; i < 3; i++) check();
    expect(lines.map(({ event }) => event)).toEqual(["check.allowed", "check.allowed", "check.denied"]);
    expect(lines[0]).toMatchObject({
      ...{ domain: "default", dimensions: { user: "ann" }, policy: "p", scope: "user", reason: "within_limits" },
      ...{ used: 1, limit: 2, remaining: 1, cost: 1 },
    });
    expect(lines[2]).toMatchObject({ reason: "over_limit", remaining: 0, state: "throttled" });
    expect(lines[2]!.retryAfterMs).toBeGreaterThan(0);
  });

  it("does not exist if its lines would not be written", () => {
    const log = { debug: (): void => undefined };
    for (const level of ["silent", "error", "warn", "info"] as const)
      expect(createDecisionLog({ log, level, sample: 1 })).toBeUndefined();
    expect(createDecisionLog({ log, level: "debug", sample: 0 })).toBeUndefined();
    expect(createDecisionLog({ log, level: "trace", sample: 1 })).toBeDefined();
  });

  it("logs the configured share", () => {
    let turn = 0;
    const { lines, check } = started({ sample: 0.25, random: () => (turn++ % 4) / 4 });
    for (let i = 0; i < 100; i++) check(`u${i}`);
    expect(lines).toHaveLength(25);
  });

  it("logs fewer if their dimensions are long: 256 KiB a second, and one more decision at most", () => {
    const { lines, check } = started();
    for (let i = 0; i < 1_000; i++) check(`${"u".repeat(1_020)}${i}`);
    expect(lines.length).toBeGreaterThan(240);
    expect(lines.length).toBeLessThanOrEqual(257);
  });

  it("logs a thousand a second at most, and then how many it left out", () => {
    let nowMs = 0;
    const { lines, check } = started({ nowMs: () => nowMs });
    for (let i = 0; i < 1_500; i++) check(`u${i}`);
    expect(lines).toHaveLength(1_000);
    nowMs = 1_000;
    check();
    check();
    expect(lines.slice(1_000).map(({ leftOut }) => leftOut)).toEqual([500, undefined]);
  });
});
