import type { Quota } from "@sluice/protocol";
import { type Decision, type LimitDecision, renderWindow } from "sluice";
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
