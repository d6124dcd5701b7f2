import type { PolicySet, Window } from "sluice";
import { renderWindow } from "sluice/internal";
import { findKnee } from "./find-knee.ts";
import { isDeciding, ReplayRun, type ReplayRunOptions } from "./replay-run.ts";
import { scalePolicy, scaleWindow } from "./scale-policy.ts";
import type { SimulatedRequest } from "./simulated-request.ts";

/** What one size of a policy's limits would do. */
export interface LimitStep {
  /** By which every window of the policy is multiplied. */
  readonly factor: number;
  /** The windows of its limits at this size. */
  readonly windows: readonly string[];
  /** Requests that the policy would deny. */
  readonly denied: number;
  /** Of all requests that are counted by the policy. */
  readonly denied_share: number;
  /** Subjects of which it would deny at least one request. */
  readonly subjects_hurt: number;
}

export interface FoundLimits {
  readonly policy: string;
  readonly steps: readonly LimitStep[];
  /** The step from which on larger limits let few more requests through. Absent: the curve has no bend. */
  readonly knee?: number;
  /** The smallest step that denies nothing. Absent: every one denies something. */
  readonly none_denied?: number;
  /** False if there were too many subjects to count them all: then `subjects_hurt` is at least as much as it says. */
  readonly subjects_exact: boolean;
  /** Live counters that were dropped because memory was full, over all steps. 0: the steps are exact. */
  readonly counters_lost: number;
}

/** From a tenth to ten times as much, evenly in ratio, 1 among them. */
export const usualFactors: readonly number[] = [
  0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 7, 10,
];
/** One bit each. */
const mostFactors = 31;
const mostSubjects = 200_000;

/** Replays requests against one policy at several sizes at once, the other policies unchanged. */
export class LimitFinder {
  readonly #policy: string;
  readonly #policies: PolicySet;
  readonly #factors: readonly number[];
  readonly #runs: readonly ReplayRun[];
  /** For each subject, the sizes that deny it something: one bit each. */
  readonly #hurtBy: Map<string, number> = new Map();
  #isFull = false;

  constructor(options: ReplayRunOptions, policy: string, factors: readonly number[] = usualFactors) {
    this.#policy = policy;
    this.#policies = options.policies;
    this.#factors = [...new Set(factors)].sort((one, other) => one - other).slice(0, mostFactors);
    this.#runs = this.#factors.map(
      (factor) => new ReplayRun({ ...options, policies: scalePolicy(options.policies, policy, factor) }),
    );
  }

  add(request: SimulatedRequest, timeMs: number): void {
    for (const [index, run] of this.#runs.entries()) {
      const decision = run.decide(request, timeMs);
      if (decision === undefined) return;
      if (decision.allowed || decision.policy !== this.#policy) continue;
      for (let i = 0; i < run.askedCount; i++)
        if (isDeciding(run.asked[i]!, decision)) this.#mark(`${decision.scope}\n${run.asked[i]!.subject}`, index);
    }
  }

  get found(): FoundLimits {
    const hurt = new Array<number>(this.#factors.length).fill(0);
    for (const marks of this.#hurtBy.values())
      for (let index = 0; index < hurt.length; index++) if ((marks >> index) & 1) hurt[index]! += 1;
    const steps = this.#factors.map((factor, index): LimitStep => {
      const { requests, denied } = this.#runs[index]!.counts.get(this.#policy) ?? { requests: 0, denied: 0 };
      return {
        factor,
        windows: listWindows(this.#policies, this.#policy).map((window) => renderWindow(scaleWindow(window, factor))),
        denied,
        denied_share: requests === 0 ? 0 : denied / requests,
        subjects_hurt: hurt[index]!,
      };
    });
    const knee = findKnee(steps.map(({ factor, denied }) => ({ x: Math.log(factor), y: denied })));
    const none = steps.findIndex(({ denied }) => denied === 0);
    return {
      policy: this.#policy,
      steps,
      ...(knee === undefined ? {} : { knee }),
      ...(none === -1 ? {} : { none_denied: none }),
      subjects_exact: !this.#isFull,
      counters_lost: this.#runs.reduce((sum, { countersLost }) => sum + countersLost, 0),
    };
  }

  #mark(subject: string, index: number): void {
    const marks = this.#hurtBy.get(subject);
    if (marks === undefined && this.#hurtBy.size >= mostSubjects) this.#isFull = true;
    else this.#hurtBy.set(subject, (marks ?? 0) | (1 << index));
  }
}

function listWindows({ policies, fallback }: PolicySet, id: string): readonly Window[] {
  const all = fallback === undefined ? policies : [...policies, fallback];
  return all.filter((policy) => policy.id === id).flatMap(({ limits }) => limits.flatMap(({ windows }) => windows));
}
