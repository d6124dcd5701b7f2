import type { RolloutRecord, StoreView } from "@sluice/sql";
import { currentPercent } from "../documents/stored-rows.ts";
import type { RolloutView, RolloutViewWait } from "../rollout-control.ts";
import { findWait, waitNeedsTallies } from "../rollouts/find-wait.ts";
import { readTallies } from "../rollouts/read-tallies.ts";
import { parseRolloutFigures } from "../rollouts/rollout-figures.ts";
import { isUnderway } from "../rollouts/steer-rollout.ts";
import { sumTallies } from "../rollouts/trial-sums.ts";

/** A rollout as stored, with its share of subjects and its metrics. The wait requires its tallies. */
export function briefRolloutView(record: RolloutRecord): RolloutView {
  return {
    ...record,
    percent: currentPercent(record),
    figures: parseRolloutFigures(record.figures),
    waitsFor: undefined,
  };
}

/** The same, with the reason for its wait. */
export async function rolloutView(
  view: Pick<StoreView, "pulse" | "tallies">,
  record: RolloutRecord,
  nowMs: number,
): Promise<RolloutView> {
  return { ...briefRolloutView(record), waitsFor: await readWait(view, record, nowMs) };
}

async function readWait(
  view: Pick<StoreView, "pulse" | "tallies">,
  record: RolloutRecord,
  nowMs: number,
): Promise<RolloutViewWait | undefined> {
  if (!isUnderway(record)) return undefined;
  const tallies = waitNeedsTallies(record, nowMs) ? await readTallies(view, record, nowMs) : [];
  const wait = findWait(record, sumTallies(tallies), nowMs);
  if (wait !== undefined) return wait;
  const { killSwitch } = await view.pulse();
  const isForced = killSwitch !== undefined && killSwitch.untilMs > nowMs;
  return isForced ? { code: "kill_switch", untilMs: killSwitch.untilMs } : { code: "due" };
}

/** The audit's record of a rollout that was started, moved or ended. */
export function auditedRollout(record: RolloutRecord): unknown {
  const { id, policy, fromVersion, toVersion, state, step, shadow, reason } = record;
  return { rollout: id, policy, from_version: fromVersion, to_version: toVersion, state, step, shadow, reason };
}
