import type { LimitRecord, Receipt } from "../counters/counter-store.ts";
import type { StoreUnavailableReason } from "../counters/store-unavailable.ts";
import type { Algorithm, Window } from "../policy/policy.ts";

/** Why the answer is what it is. */
export type DecisionReason =
  /** Every limit had room. */
  | "within_limits"
  /** A limit had no room; it will after `retryAfterMs`. */
  | "over_limit"
  /** The cost is larger than a window ever holds: waiting does not help. */
  | "never_fits"
  /** The subject is kept out for a while, after an earlier denial (`block_for`) or by hand (`Limiter.block`). */
  | "blocked"
  /** A policy denies this subject by name. */
  | "deny_list"
  /** A limit needs a dimension that the request lacks, and denies without it. */
  | "missing_dimension"
  /** Policies matched, and none of them limits this request. */
  | "unlimited"
  /**
   * The counters could not be asked, and the policy says what happens then (`on_failure`), or an operator decides for all;
   * `degraded` says why.
   */
  | "degraded";

/** Why policies did not decide as they do: counters could not be asked, or an operator decides for all (`Limiter.force`). */
export type DegradedReason = StoreUnavailableReason | "kill_switch";

export type SubjectState = "normal" | "warning" | "throttled";

/** What one limit said. Times are milliseconds, whole, rounded up. */
export interface LimitDecision {
  readonly policy: string;
  readonly version: number;
  /** The limit's name, else its dimensions: `tenant,user`, or `global` where it has none. */
  readonly scope: string;
  readonly subject: string;
  readonly algorithm: Algorithm;
  readonly allowed: boolean;
  readonly reason: DecisionReason;
  /** The window that limits most. */
  readonly window: Window;
  readonly cost: number;
  /** The most that window ever holds. */
  readonly limit: number;
  /** The largest cost that would pass by this limit now: the least over all its windows. */
  readonly remaining: number;
  /** How much of `limit` is used. */
  readonly used: number;
  readonly retryAfterMs: number | undefined;
  /** After this the counter is as good as new, if nothing else comes. */
  readonly resetAfterMs: number;
  /** Leaky bucket only. */
  readonly queue: QueuePlace | undefined;
  /** Decided and reported, never denied. */
  readonly shadow: boolean;
  /** Every window of the limit and what is recorded of it, where `record` asked for it. */
  readonly record?: LimitRecord | undefined;
}

/** A denial that was not carried out, because its policy is in shadow mode. */
export interface ShadowDenial {
  readonly policy: string;
  readonly version: number;
  /** Undefined where the policy denies by name. */
  readonly scope: string | undefined;
  readonly reason: DecisionReason;
  readonly retryAfterMs: number | undefined;
}

export interface QueuePlace {
  /** 1 is the front: this much cost, this request's included, is in the bucket. */
  readonly position: number;
  /** How long until the bucket has leaked down to this request. */
  readonly delayMs: number;
}

/**
 * The answer: plain data. The limit that speaks is, for a denial, the one with the longest wait; for an allowance, the
 * one with the smallest share left.
 */
export interface Decision {
  readonly allowed: boolean;
  readonly reason: DecisionReason;
  /** What was asked for, by the speaking limit's cost. */
  readonly cost: number;
  /** Fields of the limit that speaks; undefined where no limit applied. */
  readonly policy: string | undefined;
  readonly version: number | undefined;
  readonly scope: string | undefined;
  readonly window: Window | undefined;
  readonly limit: number | undefined;
  /**
   * The largest cost that would pass now: the least over every enforced window and limit, whichever of them speaks. A cost of
   * `remaining` passes, one more does not.
   */
  readonly remaining: number | undefined;
  /** The same by the limit that speaks alone, over all its windows. */
  readonly limitRemaining: number | undefined;
  /** How much of `limit` is used, this request included if it was allowed. */
  readonly used: number | undefined;
  /** First whole millisecond at which the same request passes if nothing else comes. Undefined: allowed, or never. */
  readonly retryAfterMs: number | undefined;
  readonly resetAfterMs: number | undefined;
  /** Epoch milliseconds of the same moment. */
  readonly resetAtMs: number | undefined;
  /**
   * First whole millisecond at which `limitRemaining` has grown if nothing else comes. Undefined where no more ever comes: the limit is
   * full, or does not refill; and for a denial that says when to retry.
   */
  readonly moreAfterMs: number | undefined;
  readonly queue: QueuePlace | undefined;
  readonly state: SubjectState;
  /** Cost denied to this subject in a row: by all nodes where the policy has `count_denials`, else as this node saw it. */
  readonly denyCount: number;
  /** The same request id was decided before; this is that decision, and nothing was charged again. */
  readonly replayed: boolean;
  readonly preview: boolean;
  /**
   * Why the counters were not asked; undefined where they were. Beside `over_limit`, `never_fits`, `blocked` or
   * `missing_dimension` it says that this node denies by counters of its own (`on_failure: local`).
   */
  readonly degraded: DegradedReason | undefined;
  /** What policies in shadow mode would have denied. */
  readonly shadow: readonly ShadowDenial[];
  /** Every limit's answer, where `details` asked for it. */
  readonly limits: readonly LimitDecision[] | undefined;
  /** For giving the take back, where `receipt` asked for it and something was charged. */
  readonly receipt: Receipt | undefined;
}
