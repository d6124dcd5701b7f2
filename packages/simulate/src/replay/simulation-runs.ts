import { LimitDemand } from "./limit-demand.ts";
import { LimitFinder, usualFactors } from "./limit-finder.ts";
import type { PreparedPolicies } from "./prepare-policies.ts";
import { ReplayRun } from "./replay-run.ts";
import type { SimulatedRequest } from "./simulated-request.ts";
import type { SimulationOptions } from "./simulation-options.ts";
import { TimelineCount } from "./timeline.ts";

/** Everything that a request goes through. It begins with the first request, whose time the clocks start at. */
export interface SimulationRuns {
  /** Undefined if the recording says what is decided now. */
  readonly now: ReplayRun | undefined;
  readonly candidate: ReplayRun;
  readonly finder: LimitFinder | undefined;
  readonly demand: LimitDemand;
  readonly timeline: TimelineCount;
}

const usualCounterBytes = 512 * 1024 * 1024;
const usualSubjects = 500_000;
const usualBuckets = 2048;

export function openRuns(
  first: SimulatedRequest,
  candidate: PreparedPolicies,
  now: PreparedPolicies | undefined,
  options: SimulationOptions,
): SimulationRuns {
  const { domain, findLimit, maxSubjects, maxBuckets } = options;
  const { wholeSecond } = first;
  const sides = now === undefined ? 1 : 2;
  const steps = findLimit === undefined ? 0 : (findLimit.factors ?? usualFactors).length;
  const count = sides * (wholeSecond ? 2 : 1) + steps;
  const maxCounterBytes = Math.floor((options.maxCounterBytes ?? usualCounterBytes) / count);
  // Whole seconds give a range: spread evenly, and all at the start of their second.
  const open = ({ policies }: PreparedPolicies): ReplayRun =>
    new ReplayRun({ policies, domain, first, maxCounterBytes, alsoAtStart: wholeSecond });
  return {
    now: now && open(now),
    candidate: open(candidate),
    finder:
      findLimit &&
      new LimitFinder(
        { policies: candidate.policies, domain, first, maxCounterBytes },
        findLimit.policy,
        findLimit.factors,
      ),
    demand: new LimitDemand(maxSubjects ?? usualSubjects),
    timeline: new TimelineCount(first.timeMs, maxBuckets ?? usualBuckets),
  };
}

/** Live counters that were dropped because memory was full, over all runs. */
export function countLost({ now, candidate }: SimulationRuns): number {
  return candidate.countersLost + (now?.countersLost ?? 0);
}
