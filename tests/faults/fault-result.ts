import type { Flavor } from "@sluice/test-servers";
import type { StoreUnavailableReason } from "sluice";

/** What happened while a fault was played, and which promises were broken by it. */
export interface FaultResult {
  readonly scenario: string;
  readonly flavor: Flavor;
  readonly checks: number;
  readonly allowed: number;
  readonly denied: number;
  /** Answered as the policy says for an outage, by reason; these are among the allowed and the denied. */
  readonly degraded: Readonly<Record<StoreUnavailableReason, number>>;
  /** The longest that any check took beyond its deadline, without the time in which the test itself stood still. */
  readonly beyondDeadlineMs: number;
  /** For how long the test itself stood still at most. */
  readonly longestStallMs: number;
  /** What the probes' counters hold. */
  readonly charged: number;
  /** What they must hold at least: probes that were admitted, and whose counters were not lost with a server. */
  readonly counted: number;
  /** Probes that were sent, and never answered: each may have been charged or not. */
  readonly lost: number;
  /** The most that a tight limit admitted, in any stretch of time, beyond burst + rate × time. */
  readonly overAdmitted: number;
  /** From the end of the fault until every affected limit denies by its counters again. */
  readonly enforcedAfterMs: number;
  /** What else was measured, in words. */
  readonly facts: readonly string[];
  /** Empty where every promise was kept. */
  readonly breaches: readonly string[];
}
