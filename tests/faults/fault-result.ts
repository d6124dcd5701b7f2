import type { Flavor } from "@sluice/test-servers";
import type { StoreUnavailableReason } from "sluice/store";

/** The outcome of a fault, and the promises that it broke. */
export interface FaultResult {
  readonly scenario: string;
  readonly flavor: Flavor;
  readonly checks: number;
  readonly allowed: number;
  readonly denied: number;
  /** Answered as the policy says for an outage, by reason; these are among the allowed and the denied. */
  readonly degraded: Readonly<Record<StoreUnavailableReason, number>>;
  /** The longest time of any check beyond its deadline, without the time in which the test itself was stalled. */
  readonly beyondDeadlineMs: number;
  /** The longest stall of the test itself. */
  readonly longestStallMs: number;
  /** The charges in the probes' counters. */
  readonly charged: number;
  /** The least they must hold: admitted probes whose counters were not lost with a server. */
  readonly counted: number;
  /** Probes that were sent, and never answered: each may have been charged or not. */
  readonly lost: number;
  /** The most that a tight limit admitted, in any interval, beyond burst + rate × time. */
  readonly overAdmitted: number;
  /** From the end of the fault until every affected limit denies by its counters again. */
  readonly enforcedAfterMs: number;
  /** Further measurements, in words. */
  readonly facts: readonly string[];
  /** Empty if every promise was kept. */
  readonly breaches: readonly string[];
}
