import type { TakeAnswer } from "../counters/counter-store.ts";
import type { Policy, Trial } from "../policy/policy.ts";
import type { CheckRequest } from "../request/check-request.ts";
import type { CompiledPolicy } from "./compiled-policy.ts";
import { isForThese, joinsTrialAt } from "./in-rollout.ts";
import { appliedIn, isRefused, type Resolution } from "./resolve.ts";
import type { Snapshot } from "./snapshot.ts";

/**
 * Called with a version of a policy that decided, the step at which its subject joins the trial, and whether it denies.
 */
export type OnTrial = (policy: Policy, step: number, denied: boolean) => void;

const noDimensions: Readonly<Record<string, string>> = {};

/** Reports how each version on trial decided about a request. */
export function reportTrials(
  onTrial: OnTrial,
  snapshot: Snapshot,
  { dimensions = noDimensions }: CheckRequest,
  resolution: Resolution,
  answer: TakeAnswer | undefined,
): void {
  const { aside, limits, refusals } = resolution;
  const applied = appliedIn(resolution);
  if (aside.length === 0 && applied.every(({ policy }) => policy.trial === undefined)) return;
  const refused = isRefused(refusals);
  const tell = (policy: Policy, trial: Trial, denied: boolean): void =>
    onTrial(policy, joinsTrialAt(policy, trial, dimensions), denied);
  // A version that does not match counts as passing what the other one is asked about: otherwise the two could not be
  // compared.
  if (!refused)
    for (const { policy } of findPassing(snapshot, applied, aside)) {
      const { trial } = policy;
      if (trial !== undefined && isForThese(policy, trial, dimensions)) tell(policy, trial, false);
    }
  for (const { policy } of applied) {
    if (policy.trial === undefined) continue;
    const refusing = refusals.some((refusal) => refusal.policy?.policy === policy);
    // If another policy denies by name, no counter was asked.
    if (refused && !refusing) continue;
    const denied =
      refusing || limits.some(({ limit }, i) => limit.policy === policy && answer?.outcomes[i]?.fits !== "now");
    tell(policy, policy.trial, denied);
  }
}

/** Versions on trial that do not match a request which their other version does. */
function findPassing(
  snapshot: Snapshot,
  applied: readonly CompiledPolicy[],
  aside: readonly CompiledPolicy[],
): readonly CompiledPolicy[] {
  const matching = [...applied, ...aside].filter(({ policy }) => policy.trial !== undefined);
  const others = new Set(matching.flatMap(({ policy }) => snapshot.findPolicy(policy.id)));
  // Compared by side: the snapshot may have changed since the request was resolved.
  const isMatching = ({ policy: { id, trial } }: CompiledPolicy): boolean =>
    matching.some(({ policy }) => policy.id === id && policy.trial?.side === trial?.side);
  return [...others].filter((one) => !isMatching(one));
}
