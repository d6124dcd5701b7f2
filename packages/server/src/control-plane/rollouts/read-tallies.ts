import type { RolloutRecord, StoreView, TallyRecord } from "@sluice/sql";

const minuteMs = 60_000;
/** Tallies older than this are neither compared nor stored. */
export const tallyKeptMinutes: number = 24 * 60;

/** Every tally that a rollout is judged by. */
export function readTallies(
  view: Pick<StoreView, "tallies">,
  { id }: Pick<RolloutRecord, "id">,
  nowMs: number,
): Promise<readonly TallyRecord[]> {
  return view.tallies(id, Math.floor(nowMs / minuteMs) - tallyKeptMinutes);
}
