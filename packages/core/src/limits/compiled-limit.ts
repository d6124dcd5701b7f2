import type { Limit, Policy, Window } from "../policy/policy.ts";

/** The mathematics a window is decided by. Three of the six algorithms share one. */
export type CounterKind =
  /** gcra, token_bucket, leaky_bucket: one theoretical arrival time. */
  | "arrival"
  /** fixed_window, and one-off quotas: a count and its end. */
  | "count"
  /** sliding_window: two counts, the older one weighted. */
  | "sliding"
  /** sliding_log: every time and cost. */
  | "log"
  /** Distinct values of a dimension: the values of a fixed window, and its end. */
  | "distinct";

/** A window, ready to decide. */
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
   * arrival: how far ahead any window that charges the same counter, such as another tier's, allows it to be. An
   * arrival further ahead was left behind by another limit or another clock.
   */
  readonly furthestMs: number;
  /** Calendar windows: the bounds of the window that contains an instant; undefined for epoch-aligned windows. */
  readonly calendar: Calendar | undefined;
  /** Names the counter among all windows of all policies; with the subject it is the whole key. */
  readonly identity: string;
  /** Seeded 64-bit hash of `identity`, for counters in memory. */
  readonly hashLo: number;
  readonly hashHi: number;
  /** False if another limit of the same request, at a slower rate, charges the very same counter. */
  readonly charges: boolean;
}

export type Calendar = (epochMs: number) => CalendarWindow;

export interface CalendarWindow {
  readonly startMs: number;
  readonly endMs: number;
}

/** The dimension whose different values a limit counts. */
export interface DistinctDimension {
  readonly dimension: string;
  /** Where its values come from, as for `segments`. */
  readonly segment: number;
}

export interface CompiledLimit {
  readonly policy: Policy;
  readonly source: Limit;
  /** policy id and limit name (else dimensions and algorithm): never a version or a position. */
  readonly identity: string;
  readonly scope: string;
  /**
   * Whether it belongs to the default policy, whose counters are separate for each domain and resource: see
   * `subjectWithin`.
   */
  readonly fallback: boolean;
  /** Whether it is one of the policy's `local_limits`, which overrides do not change. */
  readonly local: boolean;
  /** Whether another limit of the policy has the same identity, and so may share counters with this one. */
  readonly sharesIdentity: boolean;
  /** Where each dimension's value comes from: a segment of the path for `{param}`s, else −1, the request. */
  readonly segments: readonly number[];
  /** Undefined for limits on cost. */
  readonly distinct: DistinctDimension | undefined;
  readonly windows: readonly CompiledWindow[];
  readonly tiers: ReadonlyMap<string, readonly CompiledWindow[]>;
  /** How long a denial blocks the subject. 0: not at all. */
  readonly blockForMs: number;
  /** Whether subjects may be blocked, by a denial or by hand: only then are blocks looked up. */
  readonly blockable: boolean;
  /** Seeded 64-bit hash of `identity`: with the subject's it names the block, the lease and the hot key. */
  readonly hashLo: number;
  readonly hashHi: number;
}
