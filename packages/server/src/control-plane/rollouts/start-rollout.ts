import type { RolloutRecord, RolloutStep } from "@sluice/sql";
import { type Problem, SluiceError } from "sluice";
import { baselineNeeds } from "./describe-baseline.ts";

/** A new version, and how to roll it out. Absent fields have defaults. */
export interface RolloutStart {
  readonly id: string;
  readonly policy: string;
  /** 0: the policy is new. */
  readonly fromVersion: number;
  readonly toVersion: number;
  readonly author: string;
  /** The dimension by whose value a subject is in or out. */
  readonly by: string;
  /** Absent: 1 %, 10 % and all subjects, ten minutes each; in shadow all subjects at once, for ten minutes. */
  readonly steps?: readonly RolloutStep[] | undefined;
  readonly shadow?: boolean | undefined;
  /** Absent: now. */
  readonly startsMs?: number | undefined;
  /** Absent: ten minutes; none in shadow and for a new policy, when there is nothing to observe. */
  readonly observeForMs?: number | undefined;
  readonly expectMoreDenials?: boolean | undefined;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const maxSteps = 20;
const maxHoldMs = 30 * dayMs;
/** A shorter time cannot show what is usual, so the first step could not be compared. */
export const minObserveMs: number = baselineNeeds.minutes * minuteMs;
const maxObserveMs = dayMs;
/** A rollout starts within this time. */
export const maxWaitMs: number = 366 * dayMs;

export const defaultSteps: readonly RolloutStep[] = [1, 10, 100].map((percent) => ({
  percent,
  holdMs: 10 * minuteMs,
}));
export const defaultShadowSteps: readonly RolloutStep[] = [{ percent: 100, holdMs: 10 * minuteMs }];
export const defaultObserveForMs: number = 10 * minuteMs;

/** Creates a rollout. Throws `invalid_request` with every problem of the request. */
export function startRollout(start: RolloutStart, nowMs: number): RolloutRecord {
  const { fromVersion, shadow = false, startsMs = nowMs } = start;
  const steps = start.steps ?? (shadow ? defaultShadowSteps : defaultSteps);
  const comparesAtOnce = shadow || fromVersion === 0;
  const observeForMs = comparesAtOnce ? 0 : (start.observeForMs ?? defaultObserveForMs);
  const problems = [
    ...findStepProblems(steps, shadow),
    ...findObserveProblems(start.observeForMs),
    ...findRangeProblems("starts_ms", start.startsMs, 0, nowMs + maxWaitMs),
  ].map(({ path, message }): Problem => ({ path: ["rollout", ...path], message }));
  if (problems.length > 0) throw new SluiceError("invalid_request", "the rollout cannot be started", problems);
  const rollout: RolloutRecord = {
    id: start.id,
    policy: start.policy,
    fromVersion,
    toVersion: start.toVersion,
    state: "waiting",
    shadow,
    by: start.by,
    steps: steps.map(({ percent, holdMs }) => ({ percent, holdMs })),
    step: -1,
    stepSinceMs: nowMs,
    startsMs,
    observeForMs,
    expectMoreDenials: start.expectMoreDenials ?? false,
    strikes: 0,
    lookedAtMinute: 0,
    figures: "",
    reason: "waits for its start",
    author: start.author,
    createdMs: nowMs,
    changedMs: nowMs,
  };
  return startsMs > nowMs ? rollout : beginRollout(rollout, nowMs);
}

/** Starts a rollout whose time has come: it observes, or takes its first step if there is nothing to observe. */
export function beginRollout(rollout: RolloutRecord, nowMs: number): RolloutRecord {
  if (rollout.observeForMs === 0) return takeStep(rollout, 0, nowMs, "began");
  return {
    ...rollout,
    state: "observing",
    stepSinceMs: nowMs,
    changedMs: nowMs,
    reason: "observes how subjects fare under the old version",
  };
}

/** A rollout on a step, starting now. */
export function takeStep(rollout: RolloutRecord, step: number, nowMs: number, reason: string): RolloutRecord {
  return { ...rollout, state: "running", step, stepSinceMs: nowMs, changedMs: nowMs, reason };
}

function findStepProblems(steps: readonly RolloutStep[], shadow: boolean): readonly Problem[] {
  if (steps.length === 0 || steps.length > maxSteps)
    return [{ path: ["steps"], message: `a rollout has 1 to ${maxSteps} steps, not ${steps.length}` }];
  const problems: Problem[] = [];
  for (const [index, { percent, holdMs }] of steps.entries()) {
    const before = steps[index - 1]?.percent ?? 0;
    // Subjects are distinguished by hundredths of a percent.
    if (!(percent > 0 && percent <= 100) || Math.abs(percent * 100 - Math.round(percent * 100)) > 1e-6)
      problems.push({ path: ["steps", index, "percent"], message: "must be 0.01 to 100, with two decimals at most" });
    else if (percent <= before)
      problems.push({ path: ["steps", index, "percent"], message: `must be more than ${before}, the previous step` });
    problems.push(...findRangeProblems(["steps", index, "hold_ms"], holdMs, 0, maxHoldMs));
  }
  const last = steps[steps.length - 1]?.percent;
  if (!shadow && problems.length === 0 && last !== 100)
    problems.push({ path: ["steps", steps.length - 1, "percent"], message: "the last step must be 100" });
  return problems;
}

function findObserveProblems(value: number | undefined): readonly Problem[] {
  if (
    value === undefined ||
    value === 0 ||
    (Number.isSafeInteger(value) && value >= minObserveMs && value <= maxObserveMs)
  )
    return [];
  const message =
    `must be whole milliseconds, ${minObserveMs} to ${maxObserveMs}, because a comparison needs ${baselineNeeds.minutes} minutes; ` +
    "or 0, and the first step is not compared";
  return [{ path: ["observe_for_ms"], message }];
}

function findRangeProblems(
  field: string | Problem["path"],
  value: number | undefined,
  min: number,
  max: number,
): readonly Problem[] {
  if (value === undefined || (Number.isSafeInteger(value) && value >= min && value <= max)) return [];
  const path = typeof field === "string" ? [field] : field;
  return [{ path, message: `must be whole milliseconds, ${min} to ${max}` }];
}
