import type { HoldAnswer, HoldId } from "./counters/counter-store.ts";
import type { Decision } from "./decision/decision.ts";
import type { CheckRequest } from "./request/check-request.ts";

/** Work whose cost is known only afterwards, and what to hold for it until then. */
export interface ReserveRequest
  extends Pick<CheckRequest, "domain" | "dimensions" | "policies" | "limits" | "deadlineMs" | "details"> {
  /**
   * Exactly this much: 1 … 10 million. If a limit can never fit it, the request is denied with `never_fits`. Not
   * together with `estimate`.
   */
  readonly amount?: number | undefined;
  /**
   * A guess, 1 … 10 million, which is cut to what the smallest limit ever holds. Absent: the cost that the policies have
   * for the endpoint, cut likewise.
   */
  readonly estimate?: number | undefined;
  /** How long it is held if nothing is reported: 1 ms … 24 h, whole. Absent: a minute. */
  readonly ttlMs?: number | undefined;
  /**
   * Makes the request repeatable, as after a lost reply: the same id is held once, and gets its first answer again for
   * ten minutes, or for `ttlMs` if that is longer.
   */
  readonly id?: string | undefined;
}

export interface CommitOptions {
  /** Whether that was all. Absent: true. */
  readonly last?: boolean | undefined;
}

/**
 * The answer to `reserve`. Settle it once, whatever becomes of the work: in a `finally`. The methods resolve with
 * undefined if nothing is held; otherwise they reject with `StoreUnavailable` while the counters are unavailable, and
 * may be repeated.
 */
export interface Hold {
  readonly decision: Decision;
  /** All that settling needs, in this process or another. Undefined: nothing is held, for `decision` says why. */
  readonly id: HoldId | undefined;
  /** How much is held, or was asked for and denied. */
  readonly amount: number;
  /** By the counters' clock. */
  readonly expiresAtMs: number | undefined;
  /**
   * `commit` for a `finally`: only the first call counts, unless it fails. If the request was let through without
   * counters, it charges what the work cost.
   */
  settle(actual: number): Promise<HoldAnswer | undefined>;
  commit(actual: number, options?: CommitOptions): Promise<HoldAnswer | undefined>;
  extend(ttlMs: number): Promise<HoldAnswer | undefined>;
  cancel(): Promise<HoldAnswer | undefined>;
}
