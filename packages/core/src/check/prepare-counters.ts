import type { CounterStore } from "../counters/counter-store.ts";
import type { Problem } from "../errors.ts";
import type { PolicySet } from "../policy/policy.ts";
import { problemsError } from "../shape/reading.ts";
import { checkDistinct } from "./check-distinct.ts";

const needsDatabase =
  "is strong, and there is no SQL database to count in: give sluice serve --store or --strong-counters, or a limiter " +
  "withStrongCounters(counters, new SqlCounters({ url })) of @sluice/sql/counters; or write counters: exact";

/**
 * Prepares counters for policies that are about to be used. Throws `invalid_policies` if any has `counters: strong`, and
 * these counters are not: a policy that is to lose nothing is never counted by less. The same for distinct values.
 */
export function prepareCounters(counters: CounterStore, set: PolicySet): void {
  checkDistinct(set, counters);
  const { policies, fallback } = set;
  const problems: Problem[] = [];
  for (const [index, policy] of policies.entries())
    if (policy.counters === "strong")
      problems.push({ path: ["policies", index, "counters"], message: named(policy.id) });
  if (fallback?.counters === "strong") problems.push({ path: ["default", "counters"], message: needsDatabase });
  if (problems.length > 0 && counters.useStrong === undefined)
    throw problemsError("invalid_policies", "the policies", problems);
  counters.useStrong?.(problems.length > 0);
}

function named(policy: string): string {
  return `of policy ${policy} ${needsDatabase}`;
}
