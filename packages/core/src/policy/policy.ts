/**
 * What an admin writes, parsed: plain, validated data with every default filled in. Files in Sluice's own format and in
 * other formats all become this, and a snapshot is compiled from it.
 */

import type { DescriptorDomain } from "./descriptor.ts";

export const algorithms = [
  "gcra",
  "token_bucket",
  "leaky_bucket",
  "fixed_window",
  "sliding_window",
  "sliding_log",
] as const;

export type Algorithm = (typeof algorithms)[number];

/** How long a window lasts. */
export type Per =
  | { readonly kind: "ms"; readonly ms: number }
  /** From midnight to midnight, or from the first of a month to the next, in a time zone. Fixed windows only. */
  | { readonly kind: "calendar"; readonly unit: "day" | "month"; readonly timeZone: string }
  /** A one-off quota that never refills. It is forgotten 30 days after it was last used. */
  | { readonly kind: "never" };

export interface Window {
  /** Cost allowed per `per`, in the long run. May be fractional for the bucket algorithms. */
  readonly limit: number;
  readonly per: Per;
  /** Cost that may arrive at once: the capacity of a bucket. Defaults to `limit`. */
  readonly burst: number;
  readonly name?: string;
}

export const counterModes = ["auto", "exact", "leased", "strong"] as const;

/** How checks are decided: where the counters are, by leases, by leases if a counter is hot, or in a database. */
export type CounterMode = (typeof counterModes)[number];

export const eventModes = ["each", "summary", "none"] as const;

/** Which usage events a policy's decisions make: one each, one for all alike within ten seconds, or none. */
export type EventMode = (typeof eventModes)[number];

export type FailMode = "open" | "closed" | "local";

/** What happens to a request that lacks one of the limit's dimensions. */
export type MissingDimension =
  /** All such requests share one counter: leaving a header out escapes nothing. */
  | "share"
  /** The limit does not apply to them. */
  | "skip"
  /** They are denied. */
  | "deny";

export interface Limit {
  readonly name?: string;
  /** The dimensions whose values make the subject. Empty: one counter for all requests. */
  readonly by: readonly string[];
  readonly algorithm: Algorithm;
  /** Counts the different values of this dimension, instead of cost: an estimate above 1 536 of them. */
  readonly distinct?: string | undefined;
  readonly windows: readonly Window[];
  /** Other windows for subjects of a tier. */
  readonly tiers: Readonly<Record<string, { readonly windows: readonly Window[] }>>;
  readonly missing: MissingDimension;
  /** After a denial the subject is denied for this long. 0: not at all. */
  readonly blockForMs: number;
  /** Whether subjects can be blocked by hand too. With `blockForMs` they always can. */
  readonly blockable: boolean;
  /** What an edit of the limit does to running counters. */
  readonly onChange: "keep" | "reset";
}

/** Values, or CIDR ranges for `ip`, of one dimension. */
export type DimensionValues = Readonly<Record<string, readonly string[]>>;

export interface Match {
  readonly domain: string;
  /** `/v1/orders/{order}/**`; absent matches requests with any endpoint or none. */
  readonly endpoint?: string;
  /** Upper case; empty matches any. GET also matches HEAD. */
  readonly methods: readonly string[];
  /** Every named dimension must have one of its values; `*` only requires it to be present. */
  readonly dimensions: DimensionValues;
  /** Matches nothing automatically: the policy applies if it is asked for by its id. */
  readonly named?: true;
}

export interface Policy {
  readonly id: string;
  readonly version: number;
  readonly description?: string;
  readonly owner?: string;
  readonly match: Match;
  readonly limits: readonly Limit[];
  /** Matching requests are not limited by this policy; with `replaces` it exempts them from others. */
  readonly unlimited: boolean;
  /** `shadow` decides and reports, and never denies. */
  readonly mode: "enforce" | "shadow";
  /** Requests with one of these values are not limited by this policy. */
  readonly allow: DimensionValues;
  /** Requests with one of these values are denied. Deny takes precedence over allow. */
  readonly deny: DimensionValues;
  /** Cost of requests without one, by endpoint pattern; the most specific pattern wins. */
  readonly cost: readonly { readonly endpoint: string; readonly cost: number }[];
  /** Ids of policies that do not apply where this one does. */
  readonly replaces: readonly string[];
  /** Epoch milliseconds before which the policy is not applied. */
  readonly validFromMs?: number;
  /** Applied to this share of subjects, stable by the value of one dimension. */
  readonly rollout?: { readonly percent: number; readonly by: string };
  /** Set if another version of the policy is in force as well. */
  readonly trial?: Trial;
  readonly onFailure: FailMode;
  /** Whether `on_failure` was written down; linting asks for it. */
  readonly onFailureChosen: boolean;
  /** With `local`: the share of every window that a node lets through on its own. Absent: half. */
  readonly localShare?: number;
  /** With `local`: the limits that stand in for `limits`, at full size. Absent: a share of `limits`. */
  readonly localLimits?: readonly Limit[];
  readonly deadlineMs?: number;
  /** The share of the limit at which the state becomes `warning`. */
  readonly warnAt: number;
  /**
   * `exact`: every check is decided where the counters are. `leased`: by leases, however low the demand. `auto`: by
   * leases while hot. `strong`: in a database that loses nothing, and never on this node.
   */
  readonly counters: CounterMode;
  /** By how much of its smallest window's limit leases may exceed a limit, as a share, 0 … 1. 0: nothing is leased. */
  readonly maxOvershoot: number;
  /** Whether denials are counted across nodes as well as on each. */
  readonly countDenials: boolean;
  /** Which usage events a server sends of its decisions. */
  readonly events: EventMode;
}

/**
 * Two versions of a policy in force at once: the new one for the first `percent` of subjects, the old one for the
 * others. Both are among the policies of a set, under one id, and charge the same counters.
 */
export interface Trial {
  /** Names the trial, in reports of its decisions. */
  readonly rollout: string;
  readonly side: "old" | "new";
  /**
   * The dimension whose value decides whether a subject is in or out. Requests that lack it are under the old version
   * up to 100 %.
   */
  readonly by: string;
  readonly percent: number;
  /**
   * The percentages that the new version goes through, ascending: subjects are distinguished by the one at which they
   * join.
   */
  readonly steps: readonly number[];
  /**
   * The old version decides for all subjects. What the new one would decide for its share is counted in separate
   * counters, and it denies no request.
   */
  readonly shadow: boolean;
}

/** Everything that one configuration says. */
export interface PolicySet {
  /** Distinguishes a parsed set from a document that is still to be parsed. */
  readonly kind: "policy_set";
  readonly policies: readonly Policy[];
  /** Applies when nothing else matches. Absent: requests that match nothing are allowed without limit. */
  readonly fallback?: Policy;
  /** What is known of particular subjects: their tiers, custom limits and overrides. */
  readonly subjects: readonly SubjectEntry[];
  /** Policies that an operator disabled for a while. Absent: none. */
  readonly disabled?: readonly DisabledPolicy[];
  /** Subjects that an operator keeps out for a while. Absent: none. */
  readonly blocks?: readonly BlockedSubject[];
  /** Trees of descriptors, for Envoy's requests; their limits are among `policies`. Absent: none. */
  readonly descriptors?: readonly DescriptorDomain[];
}

export const disabledModes = ["allow", "shadow"] as const;

/**
 * A policy that does not limit for a while. Requests still match it, so they do not fall to the default.
 *
 * `allow`: it neither decides nor counts. `shadow`: it decides, counts and reports, and never denies.
 */
export interface DisabledPolicy {
  readonly policy: string;
  readonly mode: (typeof disabledModes)[number];
  /** Epoch milliseconds at which it is in force again. */
  readonly untilMs: number;
  /** Why, for explanations. */
  readonly reason?: string;
}

/** A tier or other limits for one subject, forever or until a moment. */
export interface SubjectEntry {
  readonly dimension: string;
  readonly value: string;
  readonly tier?: string;
  readonly limits: readonly SubjectLimit[];
}

/** A subject that is kept out: every request with its value is denied, whatever room it has. */
export interface BlockedSubject {
  readonly dimension: string;
  readonly value: string;
  /** Epoch milliseconds at which it ends. */
  readonly untilMs: number;
  /** Only these policies deny. Absent: it is denied even if no policy applies. */
  readonly policies?: readonly string[];
  /** Why, for explanations. */
  readonly reason?: string;
}

export interface SubjectLimit {
  readonly policy: string;
  /** Name of the limit; absent: every limit of the policy that is by this subject's dimension. */
  readonly limit?: string;
  readonly windows: readonly Window[];
  /** Epoch milliseconds at which it expires. */
  readonly untilMs?: number;
}
