import type { Policy, PolicySet, SubjectEntry } from "sluice";
import { isBuiltInDefault } from "sluice/internal";

/** Which side wins if both have a policy or a subject. */
export type Precedence = "files" | "store";

/** Something that files and store both have, so that only one of the two is in force. */
export type Overridden =
  | { readonly kind: "policy"; readonly id: string }
  | { readonly kind: "default" }
  | { readonly kind: "subject"; readonly dimension: string; readonly value: string }
  | { readonly kind: "domain"; readonly domain: string };

export interface MergedPolicies {
  readonly policySet: PolicySet;
  /** In the order of the side that loses. */
  readonly overridden: readonly Overridden[];
}

/**
 * Merges the policies of files and of the store. An object that both have comes from one of them as a whole: a policy
 * by its id, with both versions during a rollout; a subject with its tier and all its limits; the default policy, if
 * one was written; the descriptors of a domain. What operators disabled and blocked holds for all of them.
 */
export function mergePolicies(files: PolicySet, stored: PolicySet, precedence: Precedence): MergedPolicies {
  const [winner, loser] = precedence === "files" ? [files, stored] : [stored, files];
  const overridden: Overridden[] = [];
  const fallback = mergeFallback(winner, loser, overridden);

  const ids = new Set(winner.policies.map(({ id }) => id));
  // A policy with the name of the default policy would share its counters.
  if (writesFallback(winner) && winner.fallback !== undefined) ids.add(winner.fallback.id);
  const reported = new Set<string>();
  const policies = loser.policies.filter(({ id }) => {
    if (!ids.has(id)) return true;
    if (!reported.has(id)) overridden.push({ kind: "policy", id });
    reported.add(id);
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
  const disabled = [...(winner.disabled ?? []), ...(loser.disabled ?? [])];
  const blocks = [...(winner.blocks ?? []), ...(loser.blocks ?? [])];
  return {
    policySet: {
      kind: "policy_set",
      policies: all,
      ...(fallback === undefined ? undefined : { fallback: withOwnId(fallback, all) }),
      subjects: [...winner.subjects, ...subjects],
      ...(disabled.length === 0 ? undefined : { disabled }),
      ...(blocks.length === 0 ? undefined : { blocks }),
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

/** Whether a default policy was written, including `default: none`. */
function writesFallback({ fallback }: PolicySet): boolean {
  return fallback === undefined || !isBuiltInDefault(fallback);
}

/** The built-in one gives way to a policy with its id. */
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
