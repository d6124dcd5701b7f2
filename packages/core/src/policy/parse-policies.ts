import { problemsError } from "../shape/reading.ts";
import { assemblePolicies } from "./assemble-policies.ts";
import type { PolicySet } from "./policy.ts";
import { readPolicyDocument } from "./read-policy-document.ts";

export { defaultPolicy } from "./default-policy.ts";

/**
 * Policies from a document in Sluice's own format, as `JSON.parse` or a YAML parser returns it. Throws
 * `invalid_policies` with every problem in it.
 */
export function parsePolicies(document: unknown): PolicySet {
  const read = readPolicyDocument(document);
  const { policySet } = assemblePolicies([read]);
  if (read.problems.length > 0) throw problemsError("invalid_policies", "the policies", read.problems);
  return policySet;
}

/** Returns parsed policies as they are, and parses a document. */
export function policySetFrom(policies: PolicySet | Readonly<Record<string, unknown>>): PolicySet {
  return policies.kind === "policy_set" ? (policies as PolicySet) : parsePolicies(policies);
}
