import type { Limit, Policy, Window } from "../policy/policy.ts";
import type { CidrSet } from "../subject/cidr-set.ts";
import type { EndpointTrie } from "./endpoint-trie.ts";

/** The mathematics a window is decided by. Three of the six algorithms share one. */
export type CounterKind =
  /** gcra, token_bucket, leaky_bucket: one theoretical arrival time. */
  | "arrival"
  /** fixed_window, and one-off quotas: a count and its end. */
  | "count"
  /** sliding_window: two counts, the older one weighted. */
  | "sliding"
  /** sliding_log: every time and cost. */
  | "log";

/** A window made ready to decide by. */
export interface CompiledWindow {
  readonly source: Window;
  readonly kind: CounterKind;
  readonly leaky: boolean;
  /** The most the window ever holds. */
  readonly capacity: number;
  /** Infinity for a one-off quota. */
  readonly perMs: number;
  /** arrival: the time one unit of cost is worth, rounded up to the time grid. */
  readonly intervalMs: number;
  /** arrival: what the whole capacity is worth. */
  readonly fullMs: number;
  /** arrival: how far ahead of now the theoretical arrival may be. */
  readonly toleranceMs: number;
  /**
   * arrival: how far ahead it may be by any window that charges the same counter, such as another tier's. What is further
   * ahead was left behind by another limit or another clock.
   */
  readonly furthestMs: number;
  /** Calendar windows: the bounds of the one that holds an instant; undefined for epoch-aligned windows. */
  readonly calendar: Calendar | undefined;
  /** Names the counter among all windows of all policies; with the subject it is the whole key. */
  readonly identity: string;
  /** Seeded 64-bit hash of `identity`, for counters in memory. */
  readonly hashLo: number;
  readonly hashHi: number;
  /** False where another limit of the same request, at a slower rate, charges the very same counter. */
  readonly charges: boolean;
}

export type Calendar = (epochMs: number) => CalendarWindow;

export interface CalendarWindow {
  readonly startMs: number;
  readonly endMs: number;
}

export interface CompiledLimit {
  readonly policy: Policy;
  readonly source: Limit;
  /** policy id and limit name (else dimensions and algorithm): never a version or a position. */
  readonly identity: string;
  readonly scope: string;
  /** One of the policy's `local_limits`, which limits of particular subjects do not change. */
  readonly local: boolean;
  /** Whether another limit of the policy has the same identity, and so may share counters with this one. */
  readonly sharesIdentity: boolean;
  /** Where each dimension's value comes from: a segment of the path for `{param}`s, else −1, the request. */
  readonly segments: readonly number[];
  readonly windows: readonly CompiledWindow[];
  readonly tiers: ReadonlyMap<string, readonly CompiledWindow[]>;
  /** How long a denial blocks the subject. 0: not at all. */
  readonly blockForMs: number;
  /** Whether subjects may be blocked, by a denial or by hand: only then does anybody look. */
  readonly blockable: boolean;
  /** Seeded 64-bit hash of `identity`: with the subject's it names the block, the lease, and what is hot. */
  readonly hashLo: number;
  readonly hashHi: number;
}

export interface CompiledPolicy {
  readonly policy: Policy;
  readonly limits: readonly CompiledLimit[];
  /** What stands in for `limits` while counters cannot be asked. Empty: their share. */
  readonly localLimits: readonly CompiledLimit[];
  readonly enforced: boolean;
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
  /** Versions on trial that match as well, for other subjects than this one. */
  readonly aside: readonly CompiledPolicy[];
}

export interface Candidate {
  readonly policy: CompiledPolicy;
  /** The readings of the path that lead to it, the normal form first if it is one of them: one for nearly every request. */
  readonly paths: readonly string[];
  /** False for a policy that only some readings of the path lead to: it may limit, and exempts from nothing. */
  readonly certain: boolean;
}

/** A dimension that must have one of these values; undefined: any, as long as it is there. */
export interface Condition {
  readonly dimension: string;
  readonly list: ValueList | undefined;
}

/** Values of a dimension: texts, or for `ip` addresses and ranges of them. */
export type ValueList =
  | { readonly kind: "texts"; readonly dimension: string; readonly texts: ReadonlySet<string> }
  | { readonly kind: "addresses"; readonly dimension: string; readonly ranges: CidrSet };
