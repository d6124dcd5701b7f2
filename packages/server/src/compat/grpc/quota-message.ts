import type { Quota } from "@sluice/protocol";
import { type Decision, type LimitDecision, renderWindow, type WindowReading } from "sluice";
import { ceilOf, floorOf } from "./whole-numbers.ts";

/** How a limit stands. Undefined where there is none. */
export function quotaOf(
  { policy, scope, window, limit, used, remaining }: Decision | LimitDecision,
  resetAtMs: number | undefined,
): Quota | undefined {
  if (policy === undefined) return undefined;
  return {
    policyId: policy,
    scope: scope ?? "",
    window: window === undefined ? "" : renderWindow(window),
    limit: floorOf(limit),
    used: ceilOf(used),
    remaining: floorOf(remaining),
    resetUnixMs: ceilOf(resetAtMs),
  };
}

/** How each window of a limit stands. Of a subject that is blocked nothing remains, whatever its windows have left. */
export function windowQuotas(limit: LimitDecision, readings: readonly WindowReading[], nowMs: number): Quota[] {
  return readings.map(({ window, remaining, resetAfterMs }) => ({
    policyId: limit.policy,
    scope: limit.scope,
    window: renderWindow(window.source),
    limit: floorOf(window.capacity),
    used: ceilOf(Math.floor(window.capacity) - remaining),
    remaining: limit.reason === "blocked" ? 0 : floorOf(remaining),
    resetUnixMs: ceilOf(nowMs + resetAfterMs),
  }));
}
