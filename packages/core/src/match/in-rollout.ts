import type { Policy, Trial } from "../policy/policy.ts";
import { readDimension } from "../request/read-dimension.ts";

/**
 * Whether a subject is among the first `percent` of a rollout. The same on every node and forever: a subject that is in
 * at 1 % is still in at 10 %. FNV-1a over policy and value, in 10 000 steps of a hundredth of a percent.
 */
export function inRollout(policyId: string, value: string, percent: number): boolean {
  let hash = 0x811c9dc5;
  const text = `${policyId}|${value}`;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  // FNV's low bits are poor at the last character; fold the high ones over them.
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 12;
  return (hash >>> 0) % 10_000 < percent * 100;
}

/** Whether this version of a policy is in force for a request while both versions are. */
export function isForThese(policy: Policy, trial: Trial, dimensions: Readonly<Record<string, string>>): boolean {
  if (trial.side === "old" && trial.shadow) return true;
  return isAmongFirst(policy, trial, trial.percent, dimensions) === (trial.side === "new");
}

/** The step at which the subject of a request joins a trial; the number of steps if it never does. */
export function joinsTrialAt(policy: Policy, trial: Trial, dimensions: Readonly<Record<string, string>>): number {
  const step = trial.steps.findIndex((percent) => isAmongFirst(policy, trial, percent, dimensions));
  return step === -1 ? trial.steps.length : step;
}

function isAmongFirst(
  { id }: Policy,
  { by }: Trial,
  percent: number,
  dimensions: Readonly<Record<string, string>>,
): boolean {
  if (percent >= 100) return true;
  const value = readDimension(dimensions, by);
  return value !== "" && inRollout(id, value, percent);
}
