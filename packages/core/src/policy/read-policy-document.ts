import type { Problem } from "../errors.ts";
import { listOf } from "../shape/list-shapes.ts";
import { objectOf } from "../shape/object-shapes.ts";
import { invalid, type Path, Reading } from "../shape/reading.ts";
import { described, refine, type Shape, text } from "../shape/shape.ts";
import { hasMisspelt } from "../shape/suggest.ts";
import type { DescriptorDomain } from "./descriptor.ts";
import { domainName } from "./names.ts";
import { type PlacedPlanLimit, plansShape } from "./plan-shape.ts";
import type { Policy, SubjectEntry } from "./policy.ts";
import { fallbackShape, policyShape, type WrittenPolicy } from "./policy-shape.ts";
import { subjectShape } from "./subject-shape.ts";

export const maxPolicies = 100_000;

/** A value, and its place in the document. */
export interface Sited<T> {
  readonly value: T;
  readonly path: Path;
}

/**
 * What could be read of one document, not yet checked against the rest of it or against other documents. It is complete
 * only if `problems` is empty.
 */
export interface ReadPolicies {
  readonly policies: readonly Sited<Policy>[];
  /** Ids of all written policies, including those that could not be read, each with the field it comes from. */
  readonly ids: readonly Sited<string>[];
  /** The written default: a policy, `none` for no limit, or `absent` if the document does not say. */
  readonly fallback: Policy | "none" | "absent";
  readonly subjects: readonly Sited<SubjectEntry>[];
  /** Windows for plans, which become tiers of limits when all documents are known. Absent: none. */
  readonly plans?: readonly PlacedPlanLimit[];
  /** The tree of descriptors of a domain, if the document has one. */
  readonly descriptors?: Sited<DescriptorDomain>;
  readonly problems: Problem[];
  /** What is legal but surprising, as far as only this document's format can tell. */
  readonly warnings?: readonly Problem[];
}

/** Remembers the place of what was read. */
export function sited<T>(shape: Shape<T>): Shape<Sited<T>> {
  return refine(shape, (value, reading) => ({ value, path: reading.path }));
}

const documentFields = {
  $schema: text({ max: 4096 }),
  domain: described(domainName, "Domain of all policies here that do not name their own.", { default: "default" }),
  policies: described(listOf(sited(policyShape), { max: maxPolicies }), "Every policy that matches a request applies."),
  default: described(
    fallbackShape,
    "The policy for requests that match no other, without id and match; or `none`. Left out: 10 a second, 1000 at once, for each subject.",
  ),
  plans: described(
    plansShape,
    "Tiers by name, each with its windows for limits of any policy, in place of `tiers` under each limit.",
    { examples: [{ pro: { limits: [{ policy: "api", windows: ["100/s"] }] } }] },
  ),
  subjects: described(
    listOf(sited(subjectShape), { max: maxPolicies }),
    "Tiers and overrides of particular subjects.",
    { examples: [[{ user: "u1", tier: "premium" }]] },
  ),
};

/** A document as written, each part as far as it could be read. */
export interface WrittenDocument {
  readonly $schema?: string;
  readonly domain?: string;
  readonly policies?: readonly Sited<WrittenPolicy>[];
  readonly default?: Policy | "none";
  readonly plans?: readonly PlacedPlanLimit[];
  readonly subjects?: readonly Sited<SubjectEntry>[];
}

export const documentShape: Shape<WrittenDocument> = refine(
  objectOf({}, documentFields),
  (written, reading, raw): WrittenDocument => {
    const { policies, default: fallback, plans, subjects } = raw as Record<keyof typeof documentFields, unknown>;
    const nothing = [policies, fallback, plans, subjects].every((part) => part === undefined);
    if (nothing && !hasMisspelt(raw as object, "policies"))
      reading.problem("is missing; write a list of policies", "policies");
    return written;
  },
);

/** Reads a document in Sluice's own format as far as possible. */
export function readPolicyDocument(document: unknown): ReadPolicies {
  const reading = new Reading();
  const written = documentShape.read(document, reading);
  if (written === invalid)
    return { policies: [], ids: [], fallback: "absent", subjects: [], problems: reading.problems };
  const domain = written.domain ?? "default";
  return {
    policies: (written.policies ?? []).map(({ value, path }) => ({ value: inDomain(value, domain), path })),
    ids: writtenIds((document as { readonly policies?: unknown }).policies),
    fallback: written.default ?? "absent",
    subjects: written.subjects ?? [],
    ...(written.plans === undefined ? undefined : { plans: written.plans }),
    problems: reading.problems,
  };
}

function inDomain(policy: WrittenPolicy, domain: string): Policy {
  return { ...policy, match: { ...policy.match, domain: policy.match.domain ?? domain } };
}

function writtenIds(policies: unknown): readonly Sited<string>[] {
  if (!Array.isArray(policies)) return [];
  return policies.flatMap((policy: unknown, index) => {
    const id = (policy as { readonly id?: unknown } | null | undefined)?.id;
    return typeof id === "string" ? [{ value: id, path: ["policies", index, "id"] }] : [];
  });
}
