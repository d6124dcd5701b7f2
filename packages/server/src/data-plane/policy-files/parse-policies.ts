import { defaultPolicy, type PolicySet } from "sluice";
import { type ParsedPolicyFiles, type PolicyText, parsePolicyFiles } from "sluice/policy-text";

/** Policies from texts that are used together, with what their `runtime` block says. Throws `invalid_policies`. */
export function parsePolicies(files: readonly PolicyText[]): ParsedPolicyFiles {
  const parsed = parsePolicyFiles(files);
  return parsed.runtime?.failOpen === false ? { ...parsed, policySet: closedByDefault(parsed.policySet) } : parsed;
}

/** `fail_open: false` is said of the whole service, so it holds for the default policy too, unless one was written. */
function closedByDefault(policySet: PolicySet): PolicySet {
  const { fallback } = policySet;
  if (fallback === undefined || fallback.limits !== defaultPolicy.limits) return policySet;
  return { ...policySet, fallback: { ...fallback, onFailure: "closed" } };
}
