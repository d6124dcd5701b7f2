import type { PolicyStore, UsageStep } from "@sluice/sql";

/** How long usage is kept, minute by minute and by hours and days. */
export interface UsageKept {
  readonly minutesMs: number;
  readonly totalsMs: number;
}

const dayMs = 86_400_000;

export const defaultUsageKept: UsageKept = { minutesMs: 30 * dayMs, totalsMs: 365 * dayMs };

/** The most periods of a step that one call deletes; more wait for the next one. */
const maxPeriods = 5_000;
/** Series that one transaction deletes. */
const seriesAtOnce = 5_000;
/** The most hours that are added up in one go. */
const maxHours = 1_000;

/**
 * Adds up the hours and days whose minutes have changed until now, each in a separate transaction. Flushes do not wait for that;
 * what they change meanwhile is for the next time.
 */
export async function rollUpUsage(store: Pick<PolicyStore, "note" | "upkeep">): Promise<number> {
  await store.note((note) => note.planUsage());
  for (let hours = 0; hours < maxHours; hours += 1)
    if (!(await store.upkeep((note) => note.rollUpUsage()))) return hours;
  return maxHours;
}

/** Deletes usage that is older than it is kept, period by period. Returns how many periods. */
export async function deleteOldUsage(
  store: Pick<PolicyStore, "note" | "upkeep">,
  nowMs: number,
  kept: UsageKept,
): Promise<number> {
  const deleteSteps = async (step: UsageStep, beforeMs: number): Promise<number> => {
    for (let periods = 0; periods < maxPeriods; periods += 1)
      if (!(await store.upkeep((note) => note.deleteOldestUsage(step, beforeMs)))) return periods;
    return maxPeriods;
  };
  const beforeTotalsMs = nowMs - kept.totalsMs;
  const periods =
    (await deleteSteps("minute", nowMs - kept.minutesMs)) +
    (await deleteSteps("hour", beforeTotalsMs)) +
    (await deleteSteps("day", beforeTotalsMs));
  // A series is seen on the day of its last use, whose sums must be gone first.
  const deleteSeries = (): Promise<number> =>
    store.note((note) => note.deleteUnusedUsageSeries(beforeTotalsMs - 2 * dayMs, seriesAtOnce));
  for (let times = 0; times < maxPeriods; times += 1) if ((await deleteSeries()) < seriesAtOnce) break;
  return periods;
}
