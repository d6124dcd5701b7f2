import type { CounterMode } from "../policy/policy.ts";
import type { ResolvedLimit } from "./counter-store.ts";
import { whyNotLeasable } from "./why-not-leasable.ts";

/** The longest that anything granted may be held, a day: ledgers are kept for as long. */
export const maxHoldMs: number = 24 * 60 * 60 * 1000;

/** The most that is granted, kept or returned at once. */
export const maxUnits = 1_000_000_000;

/** How much longer than `holdMs` the centre remembers a grant, at least: for calls on their way, and clocks that drift. */
export const ledgerMarginMs = 5000;

/** Grants are remembered by the end of the epoch in which they are forgotten, which is a multiple of this since 1970. */
export const epochMs = 10_000;

/** The epoch of what is granted now: when it ends, in milliseconds since 1970. */
export function leaseEpoch(nowMs: number, holdMs: number): number {
  return Math.ceil((nowMs + holdMs + ledgerMarginMs) / epochMs) * epochMs;
}

/** The most that may be granted and unspent of a limit and subject at any moment, on all nodes together: the bound. */
export function leaseAllowance({ limit, windows }: Pick<ResolvedLimit, "limit" | "windows">): number {
  let smallest = Number.POSITIVE_INFINITY;
  for (const { source } of windows) smallest = Math.min(smallest, source.limit);
  if (windows.length === 0) return 0;
  // 29 % of 100 are 29, and not the 28.999… of binary fractions.
  const share = Math.floor(Number((limit.policy.maxOvershoot * smallest).toPrecision(12)));
  return Math.min(share, maxUnits);
}

/** Leases of fewer units than this are not worth their calls, unless a policy asks for them. */
export function leastAllowance(counters: CounterMode): number {
  return counters === "leased" ? 1 : 10;
}

/** Whether a limit may be spent elsewhere than where its counters are: `whyNotLeasable` says why not. */
export function isLeasable(of: Pick<ResolvedLimit, "limit" | "windows">): boolean {
  return whyNotLeasable(of) === undefined;
}
