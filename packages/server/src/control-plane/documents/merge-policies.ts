import type { Policy, PolicySet, SubjectEntry } from "sluice";
import { isBuiltInDefault } from "sluice/store";

/** Which wins where both have a policy, or know of a subject. */
export type Precedence = "files" | "store";

/** Something that files and store both have, so that only one of them is in force. */
export type Overridden =
  | { readonly kind: "policy"; readonly id: string }
  | { readonly kind: "default" }
  | { readonly kind: "subject"; readonly dimension: string; readonly value: string }
  | { readonly kind: "domain"; readonly domain: string };

export interface MergedPolicies {
  readonly policySet: PolicySet;
  /** In the order of the one that loses. */
  readonly overridden: readonly Overridden[];
}

/**
 * Policies of files and of the store as one set. What both have is taken from one of them whole: a policy by its id, with
 * every version of it that is on trial; a subject with its tier and all its limits; the policy for what matches nothing, where
 * somebody wrote one; the descriptors of a domain.
 */
export function mergePolicies(files: PolicySet, stored: PolicySet, precedence: Precedence): MergedPolicies {
  const [winner, loser] = precedence === "files" ? [files, stored] : [stored, files];
  const overridden: Overridden[] = [];
  const fallback = mergeFallback(winner, loser, overridden);

  const ids = new Set(winner.policies.map(({ id }) => id));
  // A policy of the same name as the one for what matches nothing would share its counters.
  if (writesFallback(winner) && winner.fallback !== undefined) ids.add(winner.fallback.id);
  const told = new Set<string>();
  const policies = loser.policies.filter(({ id }) => {
    if (!ids.has(id)) return true;
    if (!told.has(id)) overridden.push({ kind: "policy", id });
    told.add(id);
    return false;
  });

  const known = new Set(winner.subjects.map(subjectKey));
  const subjects = loser.subjects.filter((entry) => {
    if (!known.has(subjectKey(entry))) return true;
    overridden.push({ kind: "subject", dimension: entry.dimension, value: entry.value });
    return false;
  });

  const domains = new Set(winner.descriptors?.map(({ domain }) => domain));
  const descriptors = (loser.descriptors ?? []).filter(({ domain }) => {
    if (!domains.has(domain)) return true;
    overridden.push({ kind: "domain", domain });
    return false;
  });
  const all = [...winner.policies, ...policies];
  const trees = [...(winner.descriptors ?? []), ...descriptors];
  return {
    policySet: {
      kind: "policy_set",
      policies: all,
      ...(fallback === undefined ? undefined : { fallback: withOwnId(fallback, all) }),
      subjects: [...winner.subjects, ...subjects],
      ...(trees.length === 0 ? undefined : { descriptors: trees }),
    },
    overridden,
  };
}

function mergeFallback(winner: PolicySet, loser: PolicySet, overridden: Overridden[]): Policy | undefined {
  if (!writesFallback(winner)) return loser.fallback;
  if (writesFallback(loser)) overridden.push({ kind: "default" });
  return winner.fallback;
}

/** Whether a default policy was written; that no limit holds by default counts too. */
function writesFallback({ fallback }: PolicySet): boolean {
  return fallback === undefined || !isBuiltInDefault(fallback);
}

/** The built-in one makes room for a policy that has its id. */
function withOwnId(fallback: Policy, policies: readonly Policy[]): Policy {
  const taken = policies.some(({ id }) => id === fallback.id);
  return taken ? { ...fallback, id: `${fallback.id}.fallback` } : fallback;
}

function subjectKey({ dimension, value }: SubjectEntry): string {
  return JSON.stringify([dimension, value]);
}

/** For logs and people: `policy orders.read`, `the default policy`, `user u1`. */
export function renderOverridden(one: Overridden): string {
  switch (one.kind) {
    case "policy":
      return `policy ${one.id}`;
    case "default":
      return "the default policy";
    case "subject":
      return `${one.dimension} ${one.value}`;
    case "domain":
      return `the descriptors of ${one.domain}`;
  }
}
