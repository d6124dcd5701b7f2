import type { Decision, DecisionReason, DegradedReason } from "sluice";
import { type Buckets, createBuckets, durationBounds, observe, shareBounds } from "./buckets.ts";

/** What is counted for a policy with a separate label. */
export interface PolicyCounts {
  readonly policy: string;
  /**
   * The policy's domain: one for each policy, so it adds no series. `*` for the default policy, empty without a policy.
   */
  domain: string;
  inForce: VersionCounts;
  /** The version before, so that its last counts are still scraped; while two are in force, the older one. */
  before: VersionCounts | undefined;
  costAllowed: number;
  costDenied: number;
  readonly denials: Record<DecisionReason, number>;
  readonly durations: Buckets;
  readonly usedShares: Buckets;
  readonly degraded: Readonly<Record<DegradedReason, { allowed: number; denied: number }>>;
  shadowDenials: number;
  /** Checks that lacked a dimension, by its name: one of those that the policy's limits count by. */
  readonly missing: Map<string, number>;
  windows: readonly WindowCounts[];
  /** Windows of no policy: custom limits of subjects, and limits that requests bring along. */
  readonly otherWindow: WindowCounts;
}

interface VersionCounts {
  /** Undefined for limits that requests bring along. */
  readonly version: number | undefined;
  allowed: number;
  denied: number;
}

export interface WindowCounts {
  readonly counts: PolicyCounts;
  readonly labels: readonly string[];
  allowed: number;
  denied: number;
  used: number;
  remaining: number;
}

/** The counts of the version that decided. */
export function findVersion({ inForce, before }: PolicyCounts, version: number | undefined): VersionCounts {
  return before !== undefined && before.version === version ? before : inForce;
}

export function createPolicyCounts(policy: string, version: number | undefined): PolicyCounts {
  const counts: Omit<PolicyCounts, "otherWindow"> = {
    policy,
    domain: "",
    inForce: { version, allowed: 0, denied: 0 },
    before: undefined,
    costAllowed: 0,
    costDenied: 0,
    denials: {
      within_limits: 0,
      over_limit: 0,
      never_fits: 0,
      blocked: 0,
      deny_list: 0,
      missing_dimension: 0,
      unlimited: 0,
      degraded: 0,
    },
    durations: createBuckets(durationBounds),
    usedShares: createBuckets(shareBounds),
    degraded: {
      storage_unavailable: { allowed: 0, denied: 0 },
      storage_timeout: { allowed: 0, denied: 0 },
      process_starved: { allowed: 0, denied: 0 },
      storage_overloaded: { allowed: 0, denied: 0 },
      storage_full: { allowed: 0, denied: 0 },
      kill_switch: { allowed: 0, denied: 0 },
    },
    shadowDenials: 0,
    missing: new Map<string, number>(),
    windows: [],
  };
  const whole = counts as PolicyCounts;
  return Object.assign(counts, { otherWindow: createWindowCounts(whole, [policy, "", "other", ""]) });
}

export function createWindowCounts(counts: PolicyCounts, labels: readonly string[]): WindowCounts {
  return { counts, labels, allowed: 0, denied: 0, used: 0, remaining: 0 };
}

export function countWindow(window: WindowCounts, { allowed, used, limit }: Decision): void {
  if (allowed) window.allowed += 1;
  else window.denied += 1;
  if (used === undefined || limit === undefined) return;
  window.used = used;
  // For this window alone: the decision's `remaining` is the least of all.
  window.remaining = Math.floor(limit) - used;
  // A window that holds nothing is full.
  observe(window.counts.usedShares, limit > 0 ? used / limit : 1);
}
