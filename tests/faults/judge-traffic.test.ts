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

function checkedOf({
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

test("finds the stretch in which most was admitted beyond burst and rate", () => {
  const bound = { burst: 2, perSecond: 1 };
  const admitted = [0, 5000, 5001, 5002, 5003, 9000].map((at) => checkedOf({ at }));
  expect(mostBeyond(admitted, bound)).toBe(2);
  expect(mostBeyond(admitted.slice(0, 3), bound)).toBe(0);
});

test("blames a limit that admits more than its burst at once, unless its counters were lost", () => {
  const checks = Array.from({ length: 15 }, (_, at) => checkedOf({ at }));
  expect(judgeAdmission(checks, () => none).breaches).toHaveLength(1);
  expect(judgeAdmission(checks, () => ({ kind: "all", fromMs: 5, toMs: 6 })).breaches).toEqual([]);
});

test("blames a node that admits more than its share by itself", () => {
  const checks = Array.from({ length: 7 }, (_, at) =>
    checkedOf({ at, line: "tight/local", degraded: "storage_unavailable" }),
  );
  expect(judgeAdmission(checks, () => none).breaches).toHaveLength(1);
});

test("blames what was charged twice, and what was admitted without a charge", () => {
  const probes = [
    checkedOf({ line: "probe/plan" }),
    checkedOf({ line: "probe/plan", allowed: false, degraded: "storage_timeout" }),
    checkedOf({ line: "probe/plan", allowed: false, degraded: "storage_unavailable", asked: false }),
  ];
  expect([0, 1, 2, 3].map((charged) => judgeCharges(probes, charged, none).breaches.length)).toEqual([1, 0, 0, 1]);
});

test("expects of counters that were lost only what came after", () => {
  const probes = [checkedOf({ at: 0 }), checkedOf({ at: 100 }), checkedOf({ at: 200 })];
  const loss = { kind: "all", fromMs: 50, toMs: 150 } as const;
  expect([0, 1, 2, 3].map((charged) => judgeCharges(probes, charged, loss).breaches.length)).toEqual([1, 0, 0, 1]);
});

test("blames checks that hang or outlive their deadline", () => {
  const meter = new StallMeter();
  const checks = [checkedOf({ tookMs: undefined }), checkedOf({ tookMs: 24 }), checkedOf({ tookMs: 300 })];
  expect(judgeLatency(checks, meter).breaches).toHaveLength(2);
  meter.close();
});

test("blames policies that fail in another way than they say", () => {
  const degraded = "storage_unavailable";
  expect(judgeFailModes([checkedOf({ degraded })])).toHaveLength(1);
  expect(judgeFailModes([checkedOf({ degraded, line: "tight/open", allowed: false })])).toHaveLength(1);
  expect(
    judgeFailModes([checkedOf({ degraded, allowed: false }), checkedOf({ line: "tight/open", degraded })]),
  ).toEqual([]);
});
