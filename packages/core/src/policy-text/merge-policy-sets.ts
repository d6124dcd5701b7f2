import { assemblePolicies, type PolicyPart } from "../policy/assemble-policies.ts";
import { isBuiltInFallback } from "../policy/default-policy.ts";
import type { PolicySet } from "../policy/policy.ts";
import { problemsError } from "../shape/reading.ts";

/** A policy set, or one with the file that it came from, as `parsePolicyText` gives it. */
export type MergedSet = PolicySet | { readonly policySet: PolicySet; readonly file?: string | undefined };

/**
 * One policy set from several. Ids, defaults and subjects that two of them have are problems that name both files.
 * Throws `invalid_policies`. (`parsePolicyFiles` does the same from texts, with the place of every problem.)
 */
export function mergePolicySets(sets: readonly MergedSet[]): PolicySet {
  const parts = sets.map(partFromSet);
  const { policySet } = assemblePolicies(parts);
  const problems = parts.flatMap(({ problems, file }) =>
    problems.map((problem) =>
      file === undefined ? problem : { ...problem, message: `in ${file} ${problem.message}` },
    ),
  );
  if (problems.length > 0) throw problemsError("invalid_policies", "the policies", problems);
  return policySet;
}

function partFromSet(set: MergedSet): PolicyPart {
  const { policySet, file } = "policySet" in set ? set : { policySet: set, file: undefined };
  const { policies, fallback, subjects } = policySet;
  return {
    file,
    policies: policies.map((value, index) => ({ value, path: ["policies", index] })),
    ids: policies.map(({ id }, index) => ({ value: id, path: ["policies", index, "id"] })),
    fallback: fallback === undefined ? "none" : isBuiltInFallback(fallback) ? "absent" : fallback,
    subjects: subjects.map((value, index) => ({ value, path: ["subjects", index] })),
    problems: [],
  };
}
