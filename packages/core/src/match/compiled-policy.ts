import type { CompiledLimit } from "../limits/compiled-limit.ts";
import type { Policy } from "../policy/policy.ts";
import type { CidrSet } from "../subject/cidr-set.ts";
import type { EndpointTrie } from "./endpoint-trie.ts";

export interface CompiledPolicy {
  readonly policy: Policy;
  readonly limits: readonly CompiledLimit[];
  /** They stand in for `limits` while counters are unavailable. Empty: a share of `limits` does. */
  readonly localLimits: readonly CompiledLimit[];
  readonly enforced: boolean;
  /** Whether its limits are for tiers alone: then it does not apply to a subject in none of them. */
  readonly tiersOnly: boolean;
  /** Undefined: any method. */
  readonly methods: ReadonlySet<string> | undefined;
  readonly conditions: readonly Condition[];
  readonly allow: readonly ValueList[];
  readonly deny: readonly ValueList[];
  readonly costs: EndpointTrie<{ readonly specificity: string; readonly cost: number }> | undefined;
}

/** The policies that apply to a request. */
export interface Candidates {
  readonly list: readonly Candidate[];
  /** The only limit there is, if it is of the commonest kind: by one dimension, one window of arrival times. */
  readonly onlyLimit: CompiledLimit | undefined;
  /** All limits there are, if they are few, enforced, and ask for nothing but a take: see `SeveralTakes`. */
  readonly fewLimits: readonly CompiledLimit[] | undefined;
  /** Versions on trial that match as well, for other subjects than this one. */
  readonly aside: readonly CompiledPolicy[];
}

export interface Candidate {
  readonly policy: CompiledPolicy;
  /** The readings of the path that lead to it, the normal form first if it is one of them: one for nearly every request. */
  readonly paths: readonly string[];
  /** False for a policy that only some readings of the path lead to: it may limit, but exempts from nothing. */
  readonly certain: boolean;
}

/** A dimension that must have one of these values; undefined: any value, as long as it is present. */
export interface Condition {
  readonly dimension: string;
  readonly list: ValueList | undefined;
}

/** Values of a dimension: texts, or for `ip` addresses and ranges of them. */
export type ValueList =
  | { readonly kind: "texts"; readonly dimension: string; readonly texts: ReadonlySet<string> }
  | { readonly kind: "addresses"; readonly dimension: string; readonly ranges: CidrSet };
