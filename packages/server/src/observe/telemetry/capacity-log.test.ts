import { createLimiter } from "sluice";
import { describe, expect, it } from "vitest";
import { createCapacityLog } from "./capacity-log.ts";
import { createMetrics } from "./metrics.ts";

function started(policies: readonly string[] = ["p", "q"]) {
  let nowMs = 0;
  const limiter = createLimiter({
    policies: {
      policies: policies.map((id) => ({ id, match: { endpoint: `/${id}` }, limits: [{ windows: ["10/h"] }] })),
      default: "none",
    },
  });
  const metrics = createMetrics({ version: "1", sources: { generation: () => 1 } });
  metrics.usePolicies(limiter.snapshot.policySet);
  const lines: Readonly<Record<string, unknown>>[] = [];
  const warn = (_event: string, fields: Readonly<Record<string, unknown>> = {}): void => void lines.push(fields);
  const capacity = createCapacityLog(
    { nearLimits: metrics.nearLimits, shed: () => metrics.refused.shed },
    { warn },
    () => nowMs,
  );
  capacity.close();
  return {
    lines,
    metrics,
    check(policy: string, times: number): void {
      for (let i = 0; i < times; i++)
        metrics.countDecision(limiter.checkSync({ dimensions: { endpoint: `/${policy}` } }), 0);
    },
    look(afterMs = 60_000): void {
      nowMs += afterMs;
      capacity.look();
    },
  };
}

describe("the warning of limits that are nearly reached", () => {
  it("names policies whose subjects come near, with how often, and no others", () => {
    const { lines, check, look } = started();
    check("p", 12);
    check("q", 8);
    look();
    expect(lines).toEqual([{ policies: [{ policy: "p", checks: 12, near: 4, denied: 2 }] }]);
  });

  it("is silent while nothing happens, and of a policy for ten minutes", () => {
    const { lines, check, look } = started();
    look();
    check("p", 12);
    look();
    check("p", 5);
    look();
    check("q", 12);
    look();
    expect(lines.map(({ policies }) => policies)).toMatchObject([[{ policy: "p" }], [{ policy: "q" }]]);
    check("p", 5);
    look(600_000);
    expect(lines.at(-1)).toEqual({ policies: [{ policy: "p", checks: 5, near: 5, denied: 5 }] });
    look(600_000);
    expect(lines).toHaveLength(3);
  });

  it("reports checks that were refused at once, once, by reason", () => {
    const { lines, metrics, look } = started();
    metrics.countShed("rate", 3);
    metrics.countShed("rate", 4);
    look();
    look();
    metrics.countShed("pending", 1);
    look();
    expect(lines).toEqual([{ rate: 7 }, { pending: 1 }]);
  });

  it("lists ten policies, and counts the rest", () => {
    const many = Array.from({ length: 25 }, (_, i) => `p${i}`);
    const { lines, check, look } = started(many);
    for (const policy of many) check(policy, 10);
    look();
    expect(lines[0]!.policies).toHaveLength(10);
    expect(lines[0]!.more).toBe(15);
  });
});
