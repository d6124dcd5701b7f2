import type { UsagePeak, UsageStep } from "@sluice/sql";
import type { Limit, Policy, Window } from "sluice";
import { limitScope, renderWindow } from "sluice/internal";
import type { Headroom } from "../summary-control.ts";

const stepMs: Readonly<Record<UsageStep, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Peaks by the length of their periods. */
export type PeaksByStep = Readonly<Record<UsageStep, readonly UsagePeak[]>>;

/** The window that came closest to its end, of those that stored usage can judge: of the limit, and of each tier. */
export function findHeadroom(policy: Policy, peaks: PeaksByStep): Headroom | undefined {
  let closest: Headroom | undefined;
  for (const limit of policy.limits) {
    const tiers = Object.entries(limit.tiers);
    // A subject whose tier the limit does not know has its usual windows.
    const usual = (tier: string | undefined): boolean => tier === undefined || !Object.hasOwn(limit.tiers, tier);
    const found = [
      ...limit.windows.map((window) => judgeWindow(policy.id, limit, window, peaks, usual, undefined)),
      ...tiers.flatMap(([name, { windows }]) =>
        windows.map((window) => judgeWindow(policy.id, limit, window, peaks, (tier) => tier === name, name)),
      ),
    ];
    for (const one of found)
      if (one !== undefined && (closest === undefined || one.share > closest.share)) closest = one;
  }
  return closest;
}

/** Undefined if usage is not stored by what the limit counts by, or no subject with this tier is known. */
function judgeWindow(
  policy: string,
  limit: Limit,
  window: Window,
  peaks: PeaksByStep,
  hasTier: (tier: string | undefined) => boolean,
  tier: string | undefined,
): Headroom | undefined {
  const perMs = findLength(window);
  const [dimension = "", ...others] = limit.by;
  if (perMs === undefined || others.length > 0) return undefined;
  const step = perMs >= stepMs.day ? "day" : perMs >= stepMs.hour ? "hour" : "minute";
  const scope = limitScope(limit);
  const costs = peaks[step].flatMap((one) =>
    one.policy === policy && one.limit === scope && one.dimension === dimension && hasTier(one.tier) ? [one.cost] : [],
  );
  const capacity = (window.limit * stepMs[step]) / perMs;
  if (costs.length === 0 || !(capacity > 0)) return undefined;
  const cost = Math.max(...costs);
  const name = window.name ?? renderWindow(window);
  return { share: cost / capacity, limit: scope, tier, window: name, cost, capacity, step };
}

/** Undefined for a quota that never refills. */
function findLength({ per }: Window): number | undefined {
  if (per.kind === "never") return undefined;
  if (per.kind === "ms") return per.ms;
  return per.unit === "day" ? stepMs.day : 30 * stepMs.day;
}
