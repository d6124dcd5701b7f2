import type { Policy } from "../policy/policy.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { rawEndpoint } from "../request/read-dimension.ts";
import { candidatesFor, namedCandidates } from "./find-candidates.ts";
import { Snapshot } from "./snapshot.ts";

const noDimensions: Readonly<Record<string, string>> = {};

/**
 * The first enforced policy of this kind that applies to a request, whether or not it decides it. The order is that of the snapshot,
 * so it is the same policy for every such request. Undefined if there is none, and for a request that brings its limits along.
 */
export function findApplying(
  /** `Limiter.snapshot`. */
  snapshot: object,
  { domain, dimensions = noDimensions, policies, limits }: CheckRequest,
  epochMs: () => number,
  isWanted: (policy: Policy) => boolean,
): Policy | undefined {
  if (limits !== undefined || !(snapshot instanceof Snapshot)) return undefined;
  const match = snapshot.matchEndpoint(domain, rawEndpoint(dimensions));
  // Policies may have changed since the request was decided.
  const named = policies?.filter((id) => snapshot.findPolicy(id).length > 0);
  const { list } =
    named === undefined
      ? candidatesFor(snapshot, match, dimensions, epochMs)
      : namedCandidates(snapshot, named, match, dimensions, epochMs);
  for (const { policy } of list) if (policy.enforced && isWanted(policy.policy)) return policy.policy;
  return undefined;
}
