import type { RolloutRecord } from "@sluice/sql";
import { SluiceError } from "sluice";
import { beginRollout, takeStep } from "./start-rollout.ts";

/**
 * Actions of operators on a rollout: each takes the current one, and returns the new one. Throws `invalid_request` if
 * its state does not permit the action.
 */

/**
 * Takes the next step, or ends it after the last one. The operator does not want to wait, so observation ends. Strikes
 * remain: going on does not pardon them.
 */
export function advanceRollout(rollout: RolloutRecord, nowMs: number, reason = "advanced by hand"): RolloutRecord {
  requireUnderway(rollout, "advanced");
  const next = rollout.step + 1;
  if (next >= rollout.steps.length) return endRollout(rollout, "done", nowMs, reason);
  return takeStep(rollout, next, nowMs, reason);
}

/** Stays at its step. It is still evaluated, and still rolled back. */
export function pauseRollout(rollout: RolloutRecord, nowMs: number, reason = "paused by hand"): RolloutRecord {
  requireUnderway(rollout, "paused");
  if (rollout.state === "paused") throw wrongState(rollout, "it is paused already");
  return { ...rollout, state: "paused", changedMs: nowMs, reason };
}

/** Continues where it was paused; the time to observe or to hold the step starts over. */
export function resumeRollout(rollout: RolloutRecord, nowMs: number, reason = "resumed by hand"): RolloutRecord {
  if (rollout.state !== "paused") throw wrongState(rollout, "only a paused rollout can be resumed");
  if (rollout.step >= 0) return takeStep(rollout, rollout.step, nowMs, reason);
  if (rollout.startsMs > nowMs) return { ...rollout, state: "waiting", stepSinceMs: nowMs, changedMs: nowMs, reason };
  return { ...beginRollout(rollout, nowMs), reason };
}

/**
 * `done`: the new version applies to all subjects. `rolled_back`: the old one does, again. `cancelled`: the old one
 * stays, and no subject has seen the new one.
 */
export function endRollout(
  rollout: RolloutRecord,
  end: "done" | "rolled_back" | "cancelled",
  nowMs: number,
  reason: string,
): RolloutRecord {
  requireUnderway(rollout, "ended");
  return { ...rollout, state: end, stepSinceMs: nowMs, changedMs: nowMs, reason };
}

/** Whether a rollout has not ended. */
export function isUnderway({ state }: Pick<RolloutRecord, "state">): boolean {
  return state === "waiting" || state === "observing" || state === "running" || state === "paused";
}

function requireUnderway(rollout: RolloutRecord, done: string): void {
  if (!isUnderway(rollout)) throw wrongState(rollout, `a rollout that has ended cannot be ${done}`);
}

function wrongState({ id, state }: RolloutRecord, message: string): SluiceError {
  return new SluiceError("invalid_request", `rollout ${id} is ${state}: ${message}`, [{ path: ["state"], message }]);
}
