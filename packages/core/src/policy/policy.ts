/**
 * What an admin writes, parsed: plain, validated data with every default filled in. Files in Sluice's own format and
 * in the seeds' formats all become this, and a snapshot is compiled from it.
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
  /** Cost that may arrive at once: the capacity of a bucket. Equal to `limit` where nothing was said. */
  readonly burst: number;
  readonly name?: string;
}

export const counterModes = ["auto", "exact", "leased"] as const;

/** How checks are decided: where the counters are, by leases, or by leases where a counter is hot. */
export type CounterMode = (typeof counterModes)[number];

export type FailMode = "open" | "closed" | "local";

/** What a request does that lacks one of the limit's dimensions. */
export type MissingDimension =
  /** All such requests share one counter: leaving a header out escapes nothing. */
  | "share"
  /** The limit does not apply to them. */
  | "skip"
  /** They are denied. */
  | "deny";

export interface Limit {
  readonly name?: string;
  /** The dimensions whose values make the subject. Empty: one counter for everybody. */
  readonly by: readonly string[];
  readonly algorithm: Algorithm;
  readonly windows: readonly Window[];
  /** Other windows for subjects of a tier. */
  readonly tiers: Readonly<Record<string, { readonly windows: readonly Window[] }>>;
  readonly missing: MissingDimension;
  /** After a denial the subject is denied for this long. 0: not at all. */
  readonly blockForMs: number;
  /** Whether subjects can be blocked by hand too. With `blockForMs` they always can. */
  readonly blockable: boolean;
  /** What an edited limit does to running counters. */
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
  /** Every named dimension must have one of its values; `*` asks only that it is there. */
  readonly dimensions: DimensionValues;
  /** Matches nothing by itself: the policy applies where it is asked for by its id. */
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
  /** Requests with one of these values are denied. Deny goes before allow. */
  readonly deny: DimensionValues;
  /** Cost of requests that name none, by endpoint pattern; the most specific pattern wins. */
  readonly cost: readonly { readonly endpoint: string; readonly cost: number }[];
  /** Ids of policies that do not apply where this one does. */
  readonly replaces: readonly string[];
  /** Epoch milliseconds before which the policy is not applied. */
  readonly validFromMs?: number;
  /** Applied to this share of subjects, stable by the value of one dimension. */
  readonly rollout?: { readonly percent: number; readonly by: string };
  /** Set where another version of the policy is in force as well. */
  readonly trial?: Trial;
  readonly onFailure: FailMode;
  /** Whether `on_failure` was written down; linting asks that it is. */
  readonly onFailureChosen: boolean;
  /** With `local`: the share of every window that a node counts by itself. Absent: half. */
  readonly localShare?: number;
  /** With `local`: what stands in for `limits`, at its full size. Absent: `limits`, by their share. */
  readonly localLimits?: readonly Limit[];
  readonly deadlineMs?: number;
  /** Share of the limit from which the state is `warning`. */
  readonly warnAt: number;
  /** `exact`: every check is decided where the counters are. `leased`: by leases, however little is asked. `auto`: by leases while hot. */
  readonly counters: CounterMode;
  /** By how much of its smallest window's limit leases may exceed what a limit allows, as a share, 0 … 1. 0: nothing is leased. */
  readonly maxOvershoot: number;
  /** Whether denials are counted across nodes as well as on each. */
  readonly countDenials: boolean;
}

/**
 * Two versions of a policy in force at once: the new one for the first `percent` of subjects, the old one for everybody else.
 * Both are among the policies of a set, under one id, and charge the same counters.
 */
export interface Trial {
  /** Names the trial, for whoever hears of what it decides. */
  readonly rollout: string;
  readonly side: "old" | "new";
  /** The dimension by whose value a subject is in or out. Requests that lack it are under the old version up to 100 %. */
  readonly by: string;
  readonly percent: number;
  /** The percents that the new version goes through, ascending: subjects are told apart by the one at which they join. */
  readonly steps: readonly number[];
  /**
   * The old version decides for everybody. What the new one would say of its share is counted, in counters of its own, and
   * nobody is denied by it.
   */
  readonly shadow: boolean;
}

/** Everything one configuration says. */
export interface PolicySet {
  /** Tells a parsed set from a document that is still to be parsed. */
  readonly kind: "policy_set";
  readonly policies: readonly Policy[];
  /** Applies when nothing else matches. Absent: requests that match nothing are allowed without limit. */
  readonly fallback?: Policy;
  /** What is known of particular subjects: their tiers, custom limits and overrides. */
  readonly subjects: readonly SubjectEntry[];
  /** Trees of descriptors, by which Envoy asks; their limits are among `policies`. Absent: none. */
  readonly descriptors?: readonly DescriptorDomain[];
}

/** A tier or other limits for one subject, for ever or until a moment. */
export interface SubjectEntry {
  readonly dimension: string;
  readonly value: string;
  readonly tier?: string;
  readonly limits: readonly SubjectLimit[];
}

export interface SubjectLimit {
  readonly policy: string;
  /** Name of the limit; absent: every limit of the policy that is by this subject's dimension. */
  readonly limit?: string;
  readonly windows: readonly Window[];
  /** Epoch milliseconds at which it ends by itself. */
  readonly untilMs?: number;
}
