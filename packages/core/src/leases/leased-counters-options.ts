import {
  aClock,
  aFunction,
  anObject,
  checkOptions,
  numberFrom,
  type OptionForms,
  trueOrFalse,
} from "../check-options.ts";
import type { CallLater, Clock } from "../clock.ts";
import type { LimitOfSubject } from "../counters/counter-store.ts";
import type { HotKeys } from "../hot-keys/hot-keys.ts";
import { checkAtLeastZero, checkLeaseTimes } from "./check-lease-times.ts";
import type { LeaseTimes } from "./lease.ts";

export interface LeasedCountersOptions {
  /** False: everything is decided by the central store, and hot keys are only watched. */
  readonly leasing?: boolean | undefined;
  /** How long a lease should last at the rate it is spent at. Absent: 10 000. */
  readonly refreshMs?: number | undefined;
  /** How long after it was asked for a lease is renewed, or given back. Absent: 20 000. */
  readonly leaseMs?: number | undefined;
  /** How much longer what is in hand may be spent while the central store does not answer. Absent: 60 000. */
  readonly staleMs?: number | undefined;
  /**
   * A counter is leased at this many decisions per second or more, but never at fewer than seven in the time of a
   * lease, which would not pay for its call. Absent: 0.35.
   */
  readonly hotPerSecond?: number | undefined;
  /**
   * How many decisions in the time of a lease make a counter hot, while the server that holds it is short of time; at
   * least four. Undefined for other counters, which go by `hotPerSecond`. Called for each decision by the central store
   * and once a second for each lease, so it must be quick.
   */
  readonly strainedDecisions?: ((asked: LimitOfSubject) => number | undefined) | undefined;
  /** It stays leased down to this rate. Absent: a quarter of `hotPerSecond`. */
  readonly coolPerSecond?: number | undefined;
  /**
   * How many counters are leased at most, half a kilobyte each; the nearer to that, the hotter they have to be. Absent:
   * 200 000.
   */
  readonly maxLeases?: number | undefined;
  /** How long a denial by the central store is repeated here at most. Absent: 1 000; 0 asks it every time. */
  readonly maxDenialMs?: number | undefined;
  /** How many request ids are remembered at most. Absent: 100 000. */
  readonly maxIds?: number | undefined;
  /** Counts every decision. Absent: a separate sketch. */
  readonly hotKeys?: HotKeys | undefined;
  readonly clock?: Clock | undefined;
  /** For tests: schedules later calls. */
  readonly callLater?: CallLater | undefined;
}

/** Times and numbers are checked together, below. */
const optionForms: OptionForms<LeasedCountersOptions> = {
  leasing: trueOrFalse,
  refreshMs: undefined,
  leaseMs: undefined,
  staleMs: undefined,
  hotPerSecond: undefined,
  strainedDecisions: aFunction,
  coolPerSecond: numberFrom(0),
  maxLeases: undefined,
  maxDenialMs: numberFrom(0),
  maxIds: numberFrom(0),
  hotKeys: anObject,
  clock: aClock,
  callLater: aFunction,
};

/** What decides when a counter is leased, checked, with its defaults. */
export interface LeasingOptions {
  readonly leasing: boolean;
  readonly times: LeaseTimes;
  readonly hotPerSecond: number;
  readonly strainedDecisions: LeasedCountersOptions["strainedDecisions"];
  readonly coolPerSecond: number | undefined;
  readonly maxLeases: number;
}

export function parseLeasingOptions(options: LeasedCountersOptions): LeasingOptions {
  checkOptions(options, optionForms, { name: "LeasedCounters", code: "invalid_request" });
  const { leasing = true, hotPerSecond = 0.35, refreshMs = 10_000, leaseMs = 20_000, staleMs = 60_000 } = options;
  const { maxLeases = 200_000, coolPerSecond, strainedDecisions } = options;
  const times = { refreshMs, leaseMs, staleMs };
  checkLeaseTimes(times);
  checkAtLeastZero("hotPerSecond", hotPerSecond);
  checkAtLeastZero("maxLeases", maxLeases);
  return { leasing, times, hotPerSecond, strainedDecisions, coolPerSecond, maxLeases };
}
