import type { PolicySet } from "sluice";
import { defaultPolicy } from "sluice/internal";
import { type ParsedPolicyFiles, type PolicyText, parsePolicyFiles } from "sluice/policy-text";

/** Policies ready to be used. What the files say word by word is not kept. */
export type ParsedPolicies = Omit<ParsedPolicyFiles, "documents">;

/** Policies from texts that are used together, with their `runtime` block applied. Throws `invalid_policies`. */
export function parseServedPolicies(files: readonly PolicyText[]): ParsedPolicies {
  const { documents: _, ...parsed } = parsePolicyFiles(files);
  return parsed.runtime?.failOpen === false ? { ...parsed, policySet: closedByDefault(parsed.policySet) } : parsed;
}

/** `fail_open: false` concerns the whole service, so it holds for the default policy too, unless one was written. */
function closedByDefault(policySet: PolicySet): PolicySet {
  const { fallback } = policySet;
  if (fallback === undefined || fallback.limits !== defaultPolicy.limits) return policySet;
  return { ...policySet, fallback: { ...fallback, onFailure: "closed" } };
}
