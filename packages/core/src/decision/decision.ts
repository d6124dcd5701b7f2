import type { LimitRecord, Receipt } from "../counters/counter-store.ts";
import type { StoreUnavailableReason } from "../counters/store-unavailable.ts";
import type { Algorithm, Window } from "../policy/policy.ts";

/** Why the decision is what it is. */
export type DecisionReason =
  /** Every limit had room. */
  | "within_limits"
  /** A limit had no room; it will after `retryAfterMs`. */
  | "over_limit"
  /** The cost is larger than a window ever holds: waiting does not help. */
  | "never_fits"
  /** The subject is blocked for a while, after an earlier denial (`block_for`) or by hand (`Limiter.block`). */
  | "blocked"
  /** A policy denies this subject by name. */
  | "deny_list"
  /** A limit needs a dimension that the request lacks, and denies without it. */
  | "missing_dimension"
  /** Policies matched, and none of them limits this request. */
  | "unlimited"
  /**
   * The counters were unavailable and the policy says what happens then (`on_failure`), or an operator decides for all;
   * `degraded` says why.
   */
  | "degraded";

/**
 * Why policies did not decide as usual: counters were unavailable, or an operator decides for all (`Limiter.force`).
 */
export type DegradedReason = StoreUnavailableReason | "kill_switch";

export type SubjectState = "normal" | "warning" | "throttled";

/** One limit's decision. Times are whole milliseconds, rounded up. */
export interface LimitDecision {
  readonly policy: string;
  readonly version: number;
  /** The limit's name, else its dimensions: `tenant,user`, or `global` if it has none. */
  readonly scope: string;
  readonly subject: string;
  readonly algorithm: Algorithm;
  /** Present if the limit counts distinct values. */
  readonly distinct?: DistinctCount | undefined;
  readonly allowed: boolean;
  readonly reason: DecisionReason;
  /** The most restrictive window. */
  readonly window: Window;
  readonly cost: number;
  /** The most that window ever holds. */
  readonly limit: number;
  /** The largest cost that this limit would let through now: the least over all its windows. */
  readonly remaining: number;
  /** How much of `limit` is used. */
  readonly used: number;
  readonly retryAfterMs: number | undefined;
  /** Until the counter is as good as new, if no other request comes. */
  readonly resetAfterMs: number;
  /** Leaky bucket only. */
  readonly queue: QueuePlace | undefined;
  /** Decided and reported, never denied. */
  readonly shadow: boolean;
  /** Every window of the limit and its record, if `record` asked for it. */
  readonly record?: LimitRecord | undefined;
}

/** A denial that was not carried out, because its policy is in shadow mode. */
export interface ShadowDenial {
  readonly policy: string;
  readonly version: number;
  /** Undefined if the policy denies by name. */
  readonly scope: string | undefined;
  readonly reason: DecisionReason;
  readonly retryAfterMs: number | undefined;
}

/**
 * Of a limit on distinct values. Its `limit`, `remaining` and `used` count values of `dimension`, whatever the cost:
 * `remaining` is how many new ones may still come.
 */
export interface DistinctCount {
  readonly dimension: string;
  /** Up to which share of `limit` more values may pass, because they are estimated. 0: they are counted exactly. */
  readonly error: number;
}

export interface QueuePlace {
  /** 1 is the front: the cost in the bucket, including this request's. */
  readonly position: number;
  /** How long until the bucket has leaked down to this request. */
  readonly delayMs: number;
}

/**
 * The answer: plain data. The deciding limit is, for a denial, the one with the longest wait; for an allowance, the one
 * with the smallest share left.
 */
export interface Decision {
  readonly allowed: boolean;
  readonly reason: DecisionReason;
  /** The requested cost, as the deciding limit counts it. */
  readonly cost: number;
  /** Fields of the deciding limit; undefined if no limit applied. */
  readonly policy: string | undefined;
  readonly version: number | undefined;
  readonly scope: string | undefined;
  readonly window: Window | undefined;
  readonly limit: number | undefined;
  /**
   * The largest cost that would pass now: the least over every enforced window and limit, whichever of them decides. A
   * cost of `remaining` passes, one more does not. Limits on distinct values let any cost through, or none; if there are
   * no others, this is how many new values may still come.
   */
  readonly remaining: number | undefined;
  /** The same for the deciding limit alone, over all its windows. */
  readonly limitRemaining: number | undefined;
  /** How much of `limit` is used, including this request if it was allowed. */
  readonly used: number | undefined;
  /** The first whole millisecond at which the same request passes if no other comes. Undefined: allowed, or never. */
  readonly retryAfterMs: number | undefined;
  readonly resetAfterMs: number | undefined;
  /** Epoch milliseconds of the same moment. */
  readonly resetAtMs: number | undefined;
  /**
   * The first whole millisecond at which `limitRemaining` has grown if no other request comes. Undefined if it never
   * grows, because the limit is full or does not refill, and for a denial that says when to retry.
   */
  readonly moreAfterMs: number | undefined;
  readonly queue: QueuePlace | undefined;
  /** Present if the deciding limit counts distinct values. */
  readonly distinct?: DistinctCount | undefined;
  readonly state: SubjectState;
  /** Cost denied to this subject in a row: by all nodes if the policy has `count_denials`, otherwise by this node. */
  readonly denyCount: number;
  /** The same request id was decided before: this is that decision, and nothing was charged again. */
  readonly replayed: boolean;
  readonly preview: boolean;
  /**
   * Why the counters were not asked; undefined if they were. With `over_limit`, `never_fits`, `blocked` or
   * `missing_dimension` it means that this node denies by its own counters (`on_failure: local`).
   */
  readonly degraded: DegradedReason | undefined;
  /** What policies in shadow mode would have denied. */
  readonly shadow: readonly ShadowDenial[];
  /** Every limit's decision, if `details` asked for them. */
  readonly limits: readonly LimitDecision[] | undefined;
  /** For giving the take back, if `receipt` asked for it and something was charged. */
  readonly receipt: Receipt | undefined;
}
