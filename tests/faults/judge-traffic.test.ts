import type { Decision } from "sluice";
import { expect, test } from "vitest";
import type { Line } from "./fault-policies.ts";
import { judgeAdmission, judgeCharges, judgeFailModes, judgeLatency, mostBeyond } from "./judge-traffic.ts";
import { StallMeter } from "./stall-meter.ts";
import type { Checked } from "./traffic.ts";

interface Example {
  readonly line?: Line;
  readonly at?: number;
  readonly tookMs?: number | undefined;
  readonly allowed?: boolean;
  readonly degraded?: Decision["degraded"];
  readonly asked?: boolean;
}

function createCheck({
  line = "tight/closed",
  at = 0,
  allowed = true,
  degraded,
  asked = true,
  ...rest
}: Example): Checked {
  const tookMs = "tookMs" in rest ? rest.tookMs : 1;
  const settled = tookMs !== undefined;
  return {
    line,
    user: "ada",
    startedMs: at,
    settledMs: settled ? at + tookMs : undefined,
    asked,
    decision: settled ? ({ allowed, degraded } as Decision) : undefined,
    error: undefined,
  };
}

const none = { kind: "none" } as const;

test("finds the interval in which most was admitted beyond burst and rate", () => {
  const bound = { burst: 2, perSecond: 1 };
  const admitted = [0, 5000, 5001, 5002, 5003, 9000].map((at) => createCheck({ at }));
  expect(mostBeyond(admitted, bound)).toBe(2);
  expect(mostBeyond(admitted.slice(0, 3), bound)).toBe(0);
});

test("blames a limit that admits more than its burst at once, unless its counters were lost", () => {
  const checks = Array.from({ length: 15 }, (_, at) => createCheck({ at }));
  expect(judgeAdmission(checks, () => none).breaches).toHaveLength(1);
  expect(judgeAdmission(checks, () => ({ kind: "all", fromMs: 5, toMs: 6 })).breaches).toEqual([]);
});

test("blames a node that admits more than its share on its own", () => {
  const checks = Array.from({ length: 7 }, (_, at) =>
    createCheck({ at, line: "tight/local", degraded: "storage_unavailable" }),
  );
  expect(judgeAdmission(checks, () => none).breaches).toHaveLength(1);
});

test("blames a double charge, and an admission without a charge", () => {
  const probes = [
    createCheck({ line: "probe/plan" }),
    createCheck({ line: "probe/plan", allowed: false, degraded: "storage_timeout" }),
    createCheck({ line: "probe/plan", allowed: false, degraded: "storage_unavailable", asked: false }),
  ];
  expect([0, 1, 2, 3].map((charged) => judgeCharges(probes, charged, none).breaches.length)).toEqual([1, 0, 0, 1]);
});

test("expects lost counters to hold only what came after", () => {
  const probes = [createCheck({ at: 0 }), createCheck({ at: 100 }), createCheck({ at: 200 })];
  const loss = { kind: "all", fromMs: 50, toMs: 150 } as const;
  expect([0, 1, 2, 3].map((charged) => judgeCharges(probes, charged, loss).breaches.length)).toEqual([1, 0, 0, 1]);
});

test("blames checks that hang or outlive their deadline", () => {
  const meter = new StallMeter();
  const checks = [createCheck({ tookMs: undefined }), createCheck({ tookMs: 24 }), createCheck({ tookMs: 300 })];
  expect(judgeLatency(checks, meter).breaches).toHaveLength(2);
  meter.close();
});

test("blames policies that do not fail as they say", () => {
  const degraded = "storage_unavailable";
  expect(judgeFailModes([createCheck({ degraded })])).toHaveLength(1);
  expect(judgeFailModes([createCheck({ degraded, line: "tight/open", allowed: false })])).toHaveLength(1);
  expect(
    judgeFailModes([createCheck({ degraded, allowed: false }), createCheck({ line: "tight/open", degraded })]),
  ).toEqual([]);
});
