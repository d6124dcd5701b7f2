import type { RolloutRecord, TallyRecord } from "@sluice/sql";
import { findWait } from "./find-wait.ts";
import { hasBaseline } from "./judge-look.ts";
import { isWatched, judgeRollout, lastWholeMinute, looksOnStep } from "./judge-rollout.ts";
import { beginRollout, takeStep } from "./start-rollout.ts";
import { endRollout } from "./steer-rollout.ts";
import { sumTallies } from "./trial-sums.ts";

/** An automatic move of a rollout. */
export interface RolloutMove {
  readonly rollout: RolloutRecord;
  /** `looked`: only its metrics are new, and nodes decide as before. */
  readonly kind: "looked" | "began" | "step" | "done" | "rolled_back" | "cancelled";
}

/** Whether a decision may need tallies now: reading them every time would be a waste. */
export function needsTallies(rollout: RolloutRecord, nowMs: number): boolean {
  if (rollout.state === "waiting") return false;
  if (rollout.step < 0) return rollout.state === "observing" && nowMs >= rollout.stepSinceMs + rollout.observeForMs;
  return lastWholeMinute(nowMs) > rollout.lookedAtMinute;
}

/**
 * The move that is due for a rollout; undefined: none. Looks come first, so that no step is taken past one that should
 * have been a strike.
 */
export function decideRollout(
  rollout: RolloutRecord,
  tallies: readonly TallyRecord[],
  nowMs: number,
): RolloutMove | undefined {
  const sums = sumTallies(tallies);
  if (rollout.step < 0) {
    if (findWait(rollout, sums, nowMs) !== undefined) return undefined;
    if (rollout.state === "waiting") return { rollout: beginRollout(rollout, nowMs), kind: "began" };
    const uncompared = isWatched(rollout) && !hasBaseline(0, sums);
    const reason = `observed for long enough${uncompared ? "; there was too little traffic to compare the first step" : ""}`;
    return { rollout: takeStep(rollout, 0, nowMs, reason), kind: "step" };
  }
  const { rollout: judged, looks, rollBack } = judgeRollout(rollout, sums, nowMs);
  if (rollBack !== undefined)
    return { rollout: endRollout(judged, "rolled_back", nowMs, rollBack), kind: "rolled_back" };
  if (findWait(judged, sums, nowMs) === undefined) {
    const next = judged.step + 1;
    const uncompared = isWatched(judged) ? "its time is up; there was too little traffic to compare" : "its time is up";
    const reason = looksOnStep(judged) > 0 ? "nothing unusual was seen on the previous step" : uncompared;
    return next < judged.steps.length
      ? { rollout: takeStep(judged, next, nowMs, reason), kind: "step" }
      : { rollout: endRollout(judged, "done", nowMs, reason), kind: "done" };
  }
  return looks === 0 ? undefined : { rollout: judged, kind: "looked" };
}
