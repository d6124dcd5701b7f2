import type { Quota } from "@sluice/protocol";
import type { Decision, LimitDecision } from "sluice";
import { renderWindow } from "sluice/internal";
import type { WindowReading } from "sluice/store";
import { ceilOrZero, floorOrZero } from "./whole-numbers.ts";

/** The state of a limit. Undefined if there is none. */
export function renderQuota(
  { policy, scope, window, limit, used, remaining }: Decision | LimitDecision,
  resetAtMs: number | undefined,
): Quota | undefined {
  if (policy === undefined) return undefined;
  return {
    policyId: policy,
    scope: scope ?? "",
    window: window === undefined ? "" : renderWindow(window),
    limit: floorOrZero(limit),
    used: ceilOrZero(used),
    remaining: floorOrZero(remaining),
    resetUnixMs: ceilOrZero(resetAtMs),
  };
}

/** The state of each window of a limit. Nothing remains for a blocked subject, whatever its windows have left. */
export function windowQuotas(limit: LimitDecision, readings: readonly WindowReading[], nowMs: number): Quota[] {
  return readings.map(({ window, remaining, resetAfterMs }) => ({
    policyId: limit.policy,
    scope: limit.scope,
    window: renderWindow(window.source),
    limit: floorOrZero(window.capacity),
    used: ceilOrZero(Math.floor(window.capacity) - remaining),
    remaining: limit.reason === "blocked" ? 0 : floorOrZero(remaining),
    resetUnixMs: ceilOrZero(nowMs + resetAfterMs),
  }));
}
