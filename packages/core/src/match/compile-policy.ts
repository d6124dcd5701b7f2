import type { DimensionValues, Policy } from "../policy/policy.ts";
import { canonicalValue } from "../subject/canonical-value.ts";
import { createCidrSet, parseCidr } from "../subject/cidr-set.ts";
import { compileLimits, compileLocalLimits, isLookedAt, reachOfAll } from "./compile-limit.ts";
import type { CompiledPolicy, Condition, ValueList } from "./compiled-policy.ts";
import { EndpointTrie, patternSpecificity } from "./endpoint-trie.ts";

/** Policies are immutable, so a compiled one serves every generation that it is in. */
const compiledPolicies = new WeakMap<Policy, CompiledPolicy>();

export function compilePolicy(policy: Policy): CompiledPolicy {
  const known = compiledPolicies.get(policy);
  if (known !== undefined) return known;
  const compiled = compileAnew(policy);
  compiledPolicies.set(policy, compiled);
  return compiled;
}

/** Compiles a policy ahead of `usePolicies`, so that thousands can be compiled a few at a time. */
export function preparePolicy(policy: Policy): void {
  compilePolicy(policy);
}

function compileAnew(policy: Policy): CompiledPolicy {
  return {
    policy,
    limits: compileLimits(policy),
    localLimits: compileLocalLimits(policy),
    enforced: policy.mode === "enforce" && !isLookedAt(policy),
    tiersOnly: policy.limits.length > 0 && policy.limits.every(({ windows }) => windows.length === 0),
    methods: compileMethods(policy.match.methods),
    conditions: Object.entries(policy.match.dimensions).map(
      ([dimension, values]): Condition => ({
        dimension,
        list: values.includes("*") ? undefined : compileList(dimension, values),
      }),
    ),
    allow: compileLists(policy.allow),
    deny: compileLists(policy.deny),
    costs: compileCosts(policy.cost),
  };
}

/** Versions of one policy charge the same counters, and must know how far ahead each lets them be. */
export function shareReach(versions: readonly CompiledPolicy[]): readonly CompiledPolicy[] {
  if (versions.length === 1) return versions;
  const limits = reachOfAll(versions.flatMap((version) => version.limits));
  const localLimits = reachOfAll(versions.flatMap((version) => version.localLimits));
  return versions.map((version) => ({
    ...version,
    limits: limits.filter(({ policy }) => policy === version.policy),
    localLimits: localLimits.filter(({ policy }) => policy === version.policy),
  }));
}

/** Servers answer HEAD with what they have for GET, so a limit on GET holds for both. */
function compileMethods(methods: readonly string[]): ReadonlySet<string> | undefined {
  if (methods.length === 0) return undefined;
  const set = new Set(methods);
  if (set.has("GET")) set.add("HEAD");
  return set;
}

function compileLists(lists: DimensionValues): readonly ValueList[] {
  return Object.entries(lists).map(([dimension, values]) => compileList(dimension, values));
}

/** A value that is not an address matches nothing in a list of addresses; linting warns about it. */
function compileList(dimension: string, values: readonly string[]): ValueList {
  if (dimension === "ip") {
    const ranges = createCidrSet(values.filter((value) => parseCidr(value) !== undefined));
    return { kind: "addresses", dimension, ranges };
  }
  const texts = new Set(values.map((value) => canonicalValue(dimension, value)));
  return { kind: "texts", dimension, texts };
}

function compileCosts(costs: Policy["cost"]): CompiledPolicy["costs"] {
  if (costs.length === 0) return undefined;
  const trie: NonNullable<CompiledPolicy["costs"]> = new EndpointTrie();
  for (const { endpoint, cost } of costs)
    trie.at(endpoint, () => ({ specificity: patternSpecificity(endpoint), cost }));
  return trie;
}
