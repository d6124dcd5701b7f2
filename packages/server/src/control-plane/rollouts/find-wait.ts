import type { RolloutRecord } from "@sluice/sql";
import { baselineNeeds } from "./describe-baseline.ts";
import { countBaseline, hasBaseline, minDecided } from "./judge-look.ts";
import { isWatched, lastWholeMinute, looksOnStep, strikesToRollBack } from "./judge-rollout.ts";
import { addCounts, type TrialSums } from "./trial-sums.ts";

/**
 * What a rollout waits for before it advances automatically: a word, and how much of it is missing. `untilMs` is when
 * the wait is over, or when the rollout stops waiting for more traffic and advances without it.
 *
 * - `start`: its start time
 * - `observation`: the time for which the old version is watched, with the traffic so far of those that join first
 * - `baseline`: more traffic of the subjects that join first, under the old version
 * - `hold`: the time that the step lasts at least
 * - `looks`: minutes on this step that can be compared
 * - `fine_look`: a normal minute, because the latest one that could be compared was not
 * - `traffic`: decisions for subjects under the new version, which have stopped coming
 * - `operator`: an operator has to advance or resume it
 */
export type RolloutWait =
  | { readonly code: "start"; readonly untilMs: number }
  | ({ readonly code: "observation" | "baseline"; readonly untilMs: number } & SeenOfNeeded)
  | { readonly code: "hold"; readonly untilMs: number }
  | { readonly code: "looks"; readonly untilMs: number; readonly looks: number; readonly looksNeeded: number }
  | { readonly code: "fine_look"; readonly strikes: number; readonly strikesToRollBack: number }
  | { readonly code: "traffic"; readonly decided: number; readonly decidedNeeded: number }
  | { readonly code: "operator" };

interface SeenOfNeeded {
  readonly minutes: number;
  readonly minutesNeeded: number;
  readonly decided: number;
  readonly decidedNeeded: number;
}

/** Looks that a step needs before the next one is taken automatically. */
export const looksPerStep = 3;
/** With too little traffic, it waits this much longer; then time alone is enough, unless traffic has ceased. */
export const patienceMs: number = 5 * 60_000;

const minuteMs = 60_000;

/** Why a rollout is not advancing now; undefined: it can advance, or it has ended. */
export function findWait(rollout: RolloutRecord, sums: TrialSums, nowMs: number): RolloutWait | undefined {
  switch (rollout.state) {
    case "waiting":
      return nowMs < rollout.startsMs ? { code: "start", untilMs: rollout.startsMs } : undefined;
    case "observing":
      return findObservationWait(rollout, sums, nowMs);
    case "running":
      return findStepWait(rollout, sums, nowMs);
    case "paused":
      return { code: "operator" };
    default:
      return undefined;
  }
}

/** Whether `findWait` needs tallies: before a step's time is over it does not. */
export function waitNeedsTallies(rollout: RolloutRecord, nowMs: number): boolean {
  if (rollout.state === "observing") return true;
  return rollout.state === "running" && nowMs >= rollout.stepSinceMs + findHoldMs(rollout);
}

function findObservationWait(rollout: RolloutRecord, sums: TrialSums, nowMs: number): RolloutWait | undefined {
  const untilMs = rollout.stepSinceMs + rollout.observeForMs;
  const { minutes, decided } = countBaseline(0, sums);
  const seen = { minutes, minutesNeeded: baselineNeeds.minutes, decided, decidedNeeded: baselineNeeds.decided };
  if (nowMs < untilMs) return { code: "observation", untilMs, ...seen };
  const givesUpMs = untilMs + patienceMs;
  if (!isWatched(rollout) || hasBaseline(0, sums) || isWithoutRequests(0, sums) || nowMs >= givesUpMs) return undefined;
  return { code: "baseline", untilMs: givesUpMs, ...seen };
}

function findStepWait(rollout: RolloutRecord, sums: TrialSums, nowMs: number): RolloutWait | undefined {
  const holdMs = findHoldMs(rollout);
  const untilMs = rollout.stepSinceMs + holdMs;
  const isLast = rollout.step === rollout.steps.length - 1;
  // With manual steps, nothing is left to wait for once all subjects are under the new version.
  if (holdMs === 0 && (!isLast || rollout.shadow)) return { code: "operator" };
  if (nowMs < untilMs) return { code: "hold", untilMs };
  if (!isWatched(rollout)) return undefined;
  if (holdMs > 0) {
    const { strikes } = rollout;
    if (strikes > 0) return { code: "fine_look", strikes, strikesToRollBack };
    const looks = looksOnStep(rollout);
    const givesUpMs = untilMs + patienceMs;
    if (looks < looksPerStep && nowMs < givesUpMs && !isWithoutRequests(rollout.step, sums))
      return { code: "looks", untilMs: givesUpMs, looks, looksNeeded: looksPerStep };
  }
  return isSilent(rollout, sums, nowMs)
    ? { code: "traffic", decided: countSinceLook(rollout, sums, nowMs), decidedNeeded: minDecided }
    : undefined;
}

function findHoldMs({ steps, step }: RolloutRecord): number {
  return steps[step]?.holdMs ?? 0;
}

/**
 * Whether no request came from any subject that joins up to a step, while there were enough from the others: 1 % of fifty users
 * may be none of them. More time would show nothing new.
 */
function isWithoutRequests(step: number, sums: TrialSums): boolean {
  return !sums.rings.some((ring) => ring <= step) && sums.rings.some((ring) => hasBaseline(ring, sums));
}

/**
 * Whether traffic from subjects that were active has stopped. Counters may be unavailable, a kill switch may decide,
 * tallies may be late, or clients that were denied everything have given up: silence does not mean that all is well.
 */
function isSilent(rollout: RolloutRecord, sums: TrialSums, nowMs: number): boolean {
  if (rollout.lookedAtMinute >= lastWholeMinute(nowMs)) return false;
  return sums.rings.some((ring) => ring <= rollout.step && hasBaseline(ring, sums));
}

function countSinceLook({ step, shadow, lookedAtMinute }: RolloutRecord, sums: TrialSums, nowMs: number): number {
  const joined = sums.rings.filter((ring) => ring <= step);
  const last = Math.floor(nowMs / minuteMs);
  const first = Math.max(lookedAtMinute + 1, last - 60);
  return addCounts(sums, joined, shadow ? "shadow" : "new", first, last).decided;
}
