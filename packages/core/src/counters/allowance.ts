import type { CounterMode } from "../policy/policy.ts";
import type { ResolvedLimit } from "./counter-store.ts";
import { whyNotLeasable } from "./why-not-leasable.ts";

/** The longest that a grant may be held, a day: ledgers are kept for as long. */
export const maxHoldMs: number = 24 * 60 * 60 * 1000;

/** The most that is granted, kept or returned at once. */
export const maxUnits = 1_000_000_000;

/**
 * The least time that the central store remembers a grant beyond `holdMs`, to cover calls in flight and drifting
 * clocks.
 */
export const ledgerMarginMs = 5000;

/** Grants are forgotten at the end of an epoch, a multiple of this since 1970. */
export const epochMs = 10_000;

/** The epoch of a grant made now: when it ends, in milliseconds since 1970. */
export function leaseEpoch(nowMs: number, holdMs: number): number {
  return Math.ceil((nowMs + holdMs + ledgerMarginMs) / epochMs) * epochMs;
}

/** The bound: the most that may be granted and unspent of a limit and subject at any moment, on all nodes together. */
export function leaseAllowance({ limit, windows }: Pick<ResolvedLimit, "limit" | "windows">): number {
  let smallest = Number.POSITIVE_INFINITY;
  for (const { source } of windows) smallest = Math.min(smallest, source.limit);
  if (windows.length === 0) return 0;
  // 29 % of 100 is 29, not the 28.999… of binary fractions.
  const share = Math.floor(Number((limit.policy.maxOvershoot * smallest).toPrecision(12)));
  return Math.min(share, maxUnits);
}

/** Leases of fewer units than this are not worth their calls, unless a policy asks for them. */
export function leastAllowance(counters: CounterMode): number {
  return counters === "leased" ? 1 : 10;
}

/** Whether a limit may be leased. `whyNotLeasable` gives the reason if not. */
export function isLeasable(of: Pick<ResolvedLimit, "limit" | "windows">): boolean {
  return whyNotLeasable(of) === undefined;
}
