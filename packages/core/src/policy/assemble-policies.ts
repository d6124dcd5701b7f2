import { renderPath } from "../errors.ts";
import { maxProblems, type Path } from "../shape/reading.ts";
import { suggest } from "../shape/suggest.ts";
import { applyPlans } from "./apply-plans.ts";
import { defaultPolicy, defaultPolicyId, renamedDefaultPolicy } from "./default-policy.ts";
import type { DescriptorDomain } from "./descriptor.ts";
import { findMisfits } from "./parse-window.ts";
import type { Limit, Policy, PolicySet, SubjectEntry, SubjectLimit } from "./policy.ts";
import { maxPolicies, type ReadPolicies, type Sited } from "./read-policy-document.ts";

/** One document among several that are used together. */
export interface PolicyPart extends ReadPolicies {
  /** Named in problems that concern two documents. */
  readonly file?: string | undefined;
}

export interface AssembledPolicies {
  readonly policySet: PolicySet;
  /** Where a path into `policySet` leads in the documents; undefined if it is in none of them. */
  findSource(path: Path): PolicySource | undefined;
}

export interface PolicySource {
  readonly part: PolicyPart;
  /** The path of the policy or subject in its document. */
  readonly path: Path;
  /** The rest of the path, in Sluice's own format. */
  readonly rest: Path;
}

/**
 * Joins documents, and checks what only shows when all of them are known: ids, and references to them. Each problem is
 * added to the part that it is in.
 */
export function assemblePolicies(parts: readonly PolicyPart[]): AssembledPolicies {
  const written = parts.flatMap((part) => part.policies.map((policy) => ({ ...policy, part })));
  const subjects = parts.flatMap((part) => part.subjects.map((subject) => ({ ...subject, part })));
  const { descriptors, again } = checkDomains(parts);
  const known = checkIds(parts.filter((part) => !again.has(part)));
  const writer = checkFallback(parts, known);
  const { policies, ownFallback } = withPlans(parts, written, writer?.fallback, known);
  const fallback = ownFallback ?? (known.has(defaultPolicyId) ? renamedDefaultPolicy : defaultPolicy);
  checkReplaces(policies, known);
  checkSubjects(subjects, limitsByPolicy(parts, policies, fallback), known);
  return {
    policySet: {
      kind: "policy_set",
      policies: policies.map(({ value }) => value),
      ...(typeof fallback === "string" ? undefined : { fallback }),
      subjects: subjects.map(({ value }) => value),
      ...(descriptors.length === 0 ? undefined : { descriptors }),
    },
    findSource([list, ...rest]) {
      if (list === "default") return writer === undefined ? undefined : { part: writer, path: [list], rest };
      const found = (list === "policies" ? policies : subjects)[rest[0] as number];
      return found === undefined ? undefined : { part: found.part, path: found.path, rest: rest.slice(1) };
    },
  };
}

type InPart<T> = Sited<T> & { readonly part: PolicyPart };

/** Puts the windows of all plans under the limits that they name, in whichever document the policy is. */
function withPlans(
  parts: readonly PolicyPart[],
  policies: readonly InPart<Policy>[],
  ownFallback: Policy | "none" | undefined,
  known: KnownPolicies,
): { readonly policies: readonly InPart<Policy>[]; readonly ownFallback: Policy | "none" | undefined } {
  const planSource = new Map(parts.flatMap((part) => (part.plans ?? []).map((plan) => [plan, part] as const)));
  if (planSource.size === 0) return { policies, ownFallback };
  const last = typeof ownFallback === "object" ? [ownFallback] : [];
  const applied = applyPlans([...policies.map(({ value }) => value), ...last], [...planSource.keys()], {
    isKnown: (id) => known.has(id),
    note: (plan, path, message) => note(planSource.get(plan)!, path, message),
  });
  return {
    policies: policies.map((policy, index) => ({ ...policy, value: applied[index]! })),
    ownFallback: last.length === 0 ? ownFallback : applied.at(-1),
  };
}

function checkIds(parts: readonly PolicyPart[]): ReadonlyMap<string, InPart<string>> {
  const first = new Map<string, InPart<string>>();
  for (const part of parts) {
    for (const id of part.ids) {
      const earlier = first.get(id.value);
      if (earlier === undefined) first.set(id.value, { ...id, part });
      else note(part, id.path, `is ${id.value}, as is ${place(earlier, part)}; every policy has its own id`);
    }
  }
  const last = parts.at(-1);
  if (last !== undefined && first.size > maxPolicies)
    note(last, ["policies"], `must be at most ${maxPolicies} in all files together, but are ${first.size}`);
  return first;
}

/** The part that decides about requests that match nothing, if any does. */
function checkFallback(
  parts: readonly PolicyPart[],
  known: ReadonlyMap<string, InPart<string>>,
): (PolicyPart & { readonly fallback: Policy | "none" }) | undefined {
  const [writer, ...others] = parts.filter((part) => part.fallback !== "absent");
  for (const other of others)
    note(other, ["default"], `is also written in ${writer?.file ?? "another document"}; write it once`);
  const namesake = known.get(defaultPolicyId);
  if (namesake !== undefined && writer !== undefined && writer.fallback !== "none")
    note(
      namesake.part,
      namesake.path,
      `is ${defaultPolicyId}, which is the id of the policy under default; choose another`,
    );
  return writer as (PolicyPart & { readonly fallback: Policy | "none" }) | undefined;
}

/** A domain's descriptors are one tree in one document; `again` are those written before. */
function checkDomains(parts: readonly PolicyPart[]): {
  readonly descriptors: readonly DescriptorDomain[];
  readonly again: ReadonlySet<PolicyPart>;
} {
  const first = new Map<string, PolicyPart>();
  const again = new Set<PolicyPart>();
  const descriptors = parts.flatMap((part) => {
    if (part.descriptors === undefined) return [];
    const { value, path } = part.descriptors;
    const earlier = first.get(value.domain);
    if (earlier === undefined) first.set(value.domain, part);
    else {
      again.add(part);
      const where = earlier.file ?? "another document";
      note(part, path, `is ${value.domain}, as in ${where}; write all descriptors of a domain in one file`);
    }
    return [value];
  });
  return { descriptors, again };
}

function checkReplaces(policies: readonly InPart<Policy>[], known: KnownPolicies): void {
  for (const { value, path, part } of policies) {
    for (const [index, id] of value.replaces.entries())
      if (!known.has(id)) note(part, [...path, "replaces", index], unknownPolicy(id, known));
  }
  checkReplaceCycles(policies);
}

const maxReplaceChain = 100;

/** Policies that replace each other in a ring would switch all of them off. */
function checkReplaceCycles(policies: readonly InPart<Policy>[]): void {
  if (policies.every(({ value }) => value.replaces.length === 0)) return;
  const byId = new Map(policies.map((policy) => [policy.value.id, policy]));
  const done = new Set<string>();
  const visit = ({ value, path, part }: InPart<Policy>, trail: readonly string[]): void => {
    if (done.has(value.id)) return;
    for (const [index, id] of value.replaces.entries()) {
      const next = byId.get(id);
      // A policy that names itself was reported when it was read.
      if (id === value.id) continue;
      if (trail.length >= maxReplaceChain) {
        note(part, [...path, "replaces", index], `is the end of a chain of ${maxReplaceChain} policies; shorten it`);
        break;
      }
      const ringFrom = [...trail, value.id].indexOf(id);
      if (ringFrom >= 0) {
        const ring = [...trail, value.id].slice(ringFrom);
        note(part, [...path, "replaces", index], `closes a ring: ${[...ring, id].join(" replaces ")}`);
      } else if (next !== undefined) visit(next, [...trail, value.id]);
    }
    done.add(value.id);
  };
  for (const policy of policies) visit(policy, []);
}

type KnownPolicies = ReadonlyMap<string, unknown>;

/** The limits of each policy that was read completely; nothing can be said about the others. */
function limitsByPolicy(
  parts: readonly PolicyPart[],
  policies: readonly InPart<Policy>[],
  fallback: Policy | "none",
): ReadonlyMap<string, readonly Limit[]> {
  const key = (path: Path) => JSON.stringify(path.slice(0, 2));
  const withProblems = parts.filter((part) => part.problems.length > 0);
  const broken = new Map(withProblems.map((part) => [part, new Set(part.problems.map(({ path }) => key(path)))]));
  const isWhole = ({ part, path }: InPart<Policy>): boolean => !broken.get(part)?.has(key(path));
  const whole = broken.size === 0 ? policies : policies.filter(isWhole);
  const written = typeof fallback === "string" ? [] : [fallback];
  return new Map([...written, ...whole.map(({ value }) => value)].map(({ id, limits }) => [id, limits]));
}

function checkSubjects(
  subjects: readonly InPart<SubjectEntry>[],
  knownLimits: ReadonlyMap<string, readonly Limit[]>,
  known: KnownPolicies,
): void {
  const first = new Map<string, InPart<SubjectEntry>>();
  for (const subject of subjects) {
    const { part, path, value } = subject;
    const key = JSON.stringify([value.dimension, value.value]);
    const earlier = first.get(key);
    if (earlier === undefined) first.set(key, subject);
    else
      note(part, path, `is ${value.dimension} ${value.value}, as is ${place(earlier, part)}; write one entry for both`);
    for (const [index, own] of value.limits.entries()) {
      const at = [...path, "limits", index];
      const limits = knownLimits.get(own.policy);
      if (limits !== undefined) checkSubjectLimit(own, value.dimension, limits, part, at);
      else if (!known.has(own.policy)) note(part, [...at, "policy"], unknownPolicy(own.policy, known));
    }
  }
}

function checkSubjectLimit(
  own: SubjectLimit,
  dimension: string,
  limits: readonly Limit[],
  part: PolicyPart,
  at: Path,
): void {
  const names = limits.flatMap(({ name }) => (name === undefined ? [] : [name]));
  if (own.limit !== undefined && !names.includes(own.limit)) {
    const meant = suggest(own.limit, names);
    const known = names.length > 0 ? `it has ${names.join(", ")}` : "its limits have no names";
    const hint = meant === undefined ? known : `did you mean ${meant}?`;
    note(part, [...at, "limit"], `is ${own.limit}, but policy ${own.policy} has no limit of that name; ${hint}`);
    return;
  }
  const meant = limits.filter(({ name, by }) =>
    own.limit === undefined ? by.includes(dimension) : name === own.limit,
  );
  const kinds = new Map(meant.map((limit) => [`${limit.algorithm} ${limit.distinct !== undefined}`, limit]));
  for (const limit of kinds.values()) {
    for (const [index, window] of own.windows.entries()) {
      for (const { field, message } of findMisfits(window, limit))
        note(part, [...at, "windows", index, field], message);
    }
  }
}

function unknownPolicy(id: string, known: KnownPolicies): string {
  // Among very many ids, a chance resemblance is no help, and finding one takes long.
  const meant = known.size > 1_000 ? undefined : suggest(id, known.keys());
  return `is ${id}, but no policy has that id${meant === undefined ? "" : `; did you mean ${meant}?`}`;
}

function place(earlier: InPart<unknown>, seenFrom: PolicyPart): string {
  const where = renderPath(earlier.path);
  return earlier.part === seenFrom ? where : `${where} in ${earlier.part.file ?? "another document"}`;
}

function note(part: PolicyPart, path: Path, message: string): void {
  if (part.problems.length < maxProblems) part.problems.push({ path, message });
}
