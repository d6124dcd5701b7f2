import type { RolloutRecord, TallyRecord } from "@sluice/sql";
import { hasBaseline } from "./judge-look.ts";
import { isWatched, judgeSums, lastWholeMinute, looksOnStep } from "./judge-rollout.ts";
import { beginRollout, takeStep } from "./start-rollout.ts";
import { endRollout } from "./steer-rollout.ts";
import { sumTallies, type TrialSums } from "./trial-sums.ts";

/** What becomes of a rollout by itself. */
export interface RolloutMove {
  readonly rollout: RolloutRecord;
  /** `looked`: only its figures are new, and nodes decide as before. */
  readonly kind: "looked" | "began" | "step" | "done" | "rolled_back" | "cancelled";
}

/** Looks that a step needs, before the next one comes by itself. */
const looksPerStep = 3;
/** Where there is too little traffic for them, so much longer is waited; then time alone is enough, unless traffic has ceased. */
export const patienceMs: number = 5 * 60_000;

/** Whether a decision may need tallies now: reading them every time would be a waste. */
export function needsTallies(rollout: RolloutRecord, nowMs: number): boolean {
  if (rollout.state === "waiting") return false;
  if (rollout.step < 0) return rollout.state === "observing" && nowMs >= rollout.stepSinceMs + rollout.observeForMs;
  return lastWholeMinute(nowMs) > rollout.lookedAtMinute;
}

/**
 * What is to become of a rollout now; undefined: nothing. Looks come first, so that no step is taken past one that should have
 * been a strike.
 */
export function decideRollout(
  rollout: RolloutRecord,
  tallies: readonly TallyRecord[],
  nowMs: number,
): RolloutMove | undefined {
  if (rollout.state === "waiting")
    return nowMs < rollout.startsMs ? undefined : { rollout: beginRollout(rollout, nowMs), kind: "began" };
  const sums = sumTallies(tallies);
  if (rollout.step < 0) {
    if (rollout.state !== "observing") return undefined;
    const observedMs = nowMs - rollout.stepSinceMs - rollout.observeForMs;
    if (observedMs < 0) return undefined;
    if (observedMs < patienceMs && isWatched(rollout) && !hasBaseline(0, sums)) return undefined;
    return { rollout: takeStep(rollout, 0, nowMs, "observed for long enough"), kind: "step" };
  }
  const { rollout: judged, looks, rollBack } = judgeSums(rollout, sums, nowMs);
  if (rollBack !== undefined)
    return { rollout: endRollout(judged, "rolled_back", nowMs, rollBack), kind: "rolled_back" };
  if (mayGoOn(judged, nowMs) && !isSilent(judged, sums, nowMs)) {
    const next = judged.step + 1;
    const reason = looksOnStep(judged) > 0 ? "nothing unusual was seen on the step before" : "its time has come";
    return next < judged.steps.length
      ? { rollout: takeStep(judged, next, nowMs, reason), kind: "step" }
      : { rollout: endRollout(judged, "done", nowMs, reason), kind: "done" };
  }
  return looks === 0 ? undefined : { rollout: judged, kind: "looked" };
}

/**
 * Whether nothing is heard of subjects that were heard of before. Counters may be away, a kill switch may decide, tallies may be
 * on their way, or who was denied everything has given up: that nothing is seen does not say that nothing is wrong.
 */
function isSilent(rollout: RolloutRecord, sums: TrialSums, nowMs: number): boolean {
  if (!isWatched(rollout) || rollout.lookedAtMinute >= lastWholeMinute(nowMs)) return false;
  return sums.rings.some((ring) => ring <= rollout.step && hasBaseline(ring, sums));
}

function mayGoOn(rollout: RolloutRecord, nowMs: number): boolean {
  if (rollout.state !== "running") return false;
  const holdMs = rollout.steps[rollout.step]?.holdMs ?? 0;
  const heldMs = nowMs - rollout.stepSinceMs - holdMs;
  // Whoever steps by hand has nothing left to wait for when everybody is under the new version.
  if (holdMs === 0) return rollout.step === rollout.steps.length - 1 && !rollout.shadow;
  if (heldMs < 0) return false;
  if (!isWatched(rollout)) return true;
  return rollout.strikes === 0 && (looksOnStep(rollout) >= looksPerStep || heldMs >= patienceMs);
}
