import type { PolicySet } from "sluice";

/**
 * How many policies are in force, the same in status, logs and health: each once, even while two versions of it are.
 * The policy for requests that match nothing is not counted.
 */
export function countPolicies({
  policies,
}: {
  readonly policies: readonly Pick<PolicySet["policies"][number], "id">[];
}): number {
  return new Set(policies.map(({ id }) => id)).size;
}
