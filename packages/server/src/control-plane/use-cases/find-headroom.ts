import type { UsagePeak, UsageStep } from "@sluice/sql";
import type { Limit, Policy, Window } from "sluice";
import { limitScope, renderWindow } from "sluice/internal";
import type { Headroom } from "../summary-control.ts";

const stepMs: Readonly<Record<UsageStep, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Peaks by the length of their periods. */
export type PeaksByStep = Readonly<Record<UsageStep, readonly UsagePeak[]>>;

/** The window that came closest to its end, of those that stored usage can judge. */
export function findHeadroom(policy: Policy, peaks: PeaksByStep): Headroom | undefined {
  let closest: Headroom | undefined;
  for (const limit of policy.limits) {
    for (const window of limit.windows) {
      const found = judgeWindow(policy.id, limit, window, peaks);
      if (found !== undefined && (closest === undefined || found.share > closest.share)) closest = found;
    }
  }
  return closest;
}

/** Undefined if usage is not stored by what the limit counts by. */
function judgeWindow(policy: string, limit: Limit, window: Window, peaks: PeaksByStep): Headroom | undefined {
  const perMs = findLength(window);
  const [dimension = "", ...others] = limit.by;
  if (perMs === undefined || others.length > 0) return undefined;
  const step = perMs >= stepMs.day ? "day" : perMs >= stepMs.hour ? "hour" : "minute";
  const scope = limitScope(limit);
  const peak = peaks[step].find((one) => one.policy === policy && one.limit === scope && one.dimension === dimension);
  const capacity = (window.limit * stepMs[step]) / perMs;
  if (peak === undefined || !(capacity > 0)) return undefined;
  const { cost } = peak;
  return { share: cost / capacity, limit: scope, window: window.name ?? renderWindow(window), cost, capacity, step };
}

/** Undefined for a quota that never refills. */
function findLength({ per }: Window): number | undefined {
  if (per.kind === "never") return undefined;
  if (per.kind === "ms") return per.ms;
  return per.unit === "day" ? stepMs.day : 30 * stepMs.day;
}
