import type { SimulatedRequest } from "./simulated-request.ts";

/** Sums over all requests of a simulation. */
export interface SimulationTotals {
  requests: number;
  wholeSeconds: number;
  invalid: number;
  /** The first of the invalid ones. */
  readonly invalidExamples: SimulatedRequest[];
  firstMs: number;
  lastMs: number;
  /** Whether the recording says of any request how it was decided. */
  hasRecorded: boolean;
  allowedAllowed: number;
  allowedDenied: number;
  deniedAllowed: number;
  deniedDenied: number;
}

export function createTotals(): SimulationTotals {
  return {
    requests: 0,
    wholeSeconds: 0,
    invalid: 0,
    invalidExamples: [],
    firstMs: 0,
    lastMs: 0,
    hasRecorded: false,
    allowedAllowed: 0,
    allowedDenied: 0,
    deniedAllowed: 0,
    deniedDenied: 0,
  };
}

/** Counts one decided request. */
export function countRequest(
  totals: SimulationTotals,
  { wholeSecond, wasDenied }: SimulatedRequest,
  timeMs: number,
  allowedNow: boolean,
  allowed: boolean,
): void {
  totals.requests += 1;
  if (timeMs > totals.lastMs) totals.lastMs = timeMs;
  if (wholeSecond) totals.wholeSeconds += 1;
  if (wasDenied !== undefined) totals.hasRecorded = true;
  if (allowedNow) {
    if (allowed) totals.allowedAllowed += 1;
    else totals.allowedDenied += 1;
  } else if (allowed) totals.deniedAllowed += 1;
  else totals.deniedDenied += 1;
}
