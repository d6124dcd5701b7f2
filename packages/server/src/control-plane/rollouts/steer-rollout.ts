import type { RolloutRecord } from "@sluice/sql";
import { SluiceError } from "sluice";
import { beginRollout, takeStep } from "./start-rollout.ts";

/**
 * What people do to a rollout: each takes one as it is, and answers one as it is to be. Throws `invalid_request` where that
 * cannot be done in its state.
 */

/**
 * The next step, or from the last one the end. Who says so does not want to wait, so it is not observed any longer. Strikes
 * stay: what was beyond what is usual is not pardoned by going on.
 */
export function advanceRollout(rollout: RolloutRecord, nowMs: number, reason = "advanced by hand"): RolloutRecord {
  demandUnderway(rollout, "advanced");
  const next = rollout.step + 1;
  if (next >= rollout.steps.length) return endRollout(rollout, "done", nowMs, reason);
  return takeStep(rollout, next, nowMs, reason);
}

/** Stays where it is. It is still looked at, and still rolled back. */
export function pauseRollout(rollout: RolloutRecord, nowMs: number, reason = "paused by hand"): RolloutRecord {
  demandUnderway(rollout, "paused");
  if (rollout.state === "paused") throw wrongState(rollout, "it is paused already");
  return { ...rollout, state: "paused", changedMs: nowMs, reason };
}

/** Goes on where it was paused; the time to observe or to hold the step begins afresh. */
export function resumeRollout(rollout: RolloutRecord, nowMs: number, reason = "resumed by hand"): RolloutRecord {
  if (rollout.state !== "paused") throw wrongState(rollout, "only a paused rollout can be resumed");
  if (rollout.step >= 0) return takeStep(rollout, rollout.step, nowMs, reason);
  if (rollout.startsMs > nowMs) return { ...rollout, state: "waiting", stepSinceMs: nowMs, changedMs: nowMs, reason };
  return { ...beginRollout(rollout, nowMs), reason };
}

/**
 * `done`: the new version is for everybody. `rolled_back`: the old one is, again. `cancelled`: the old one stays, and nobody has
 * seen the new one.
 */
export function endRollout(
  rollout: RolloutRecord,
  end: "done" | "rolled_back" | "cancelled",
  nowMs: number,
  reason: string,
): RolloutRecord {
  demandUnderway(rollout, "ended");
  return { ...rollout, state: end, stepSinceMs: nowMs, changedMs: nowMs, reason };
}

/** Whether a rollout has not come to its end. */
export function isUnderway({ state }: Pick<RolloutRecord, "state">): boolean {
  return state === "waiting" || state === "observing" || state === "running" || state === "paused";
}

function demandUnderway(rollout: RolloutRecord, done: string): void {
  if (!isUnderway(rollout)) throw wrongState(rollout, `a rollout that has ended cannot be ${done}`);
}

function wrongState({ id, state }: RolloutRecord, message: string): SluiceError {
  return new SluiceError("invalid_request", `rollout ${id} is ${state}: ${message}`, [{ path: ["state"], message }]);
}
