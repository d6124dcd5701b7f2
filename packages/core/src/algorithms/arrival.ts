import type { CompiledWindow } from "../limits/compiled-limit.ts";
import { ceilToGrid, floorToGrid } from "./time-grid.ts";
import { createVerdict, type WindowVerdict, type WritableVerdict } from "./window-verdict.ts";

/**
 * GCRA, token bucket and leaky bucket are one piece of mathematics. The counter is a single instant, the *theoretical
 * arrival*: when the cost taken so far would all have arrived had it come at exactly the limit's rate.
 *
 *     ahead        = max(theoreticalArrival − now, 0)        how full the leaky bucket is, in time
 *     nextArrival  = now + ahead + worth(cost)
 *     allowedFrom  = nextArrival − tolerance                 tolerance = worth(burst)
 *     remaining    = (tolerance − ahead) × limit / per       how many tokens the token bucket holds
 *
 * An arrival in the past is an idle counter, the same as an absent one.
 *
 * A debt (see `chargeArrival`) is stored as the negated instant. Without that mark an arrival further ahead than any
 * limit of the counter allows cannot come from one: the limit was lowered or the clock stepped back, and the arrival is
 * corrected to what the whole burst is worth, a counter that is just used up. An edit or a clock never locks a subject
 * out.
 */

/** The arrival of a counter that was never used. */
export const neverArrived = 0;

/** What giving a take back needs to know of its window. */
export type ArrivalRate = Pick<CompiledWindow, "intervalMs" | "perMs" | "toleranceMs"> & {
  readonly source: Pick<CompiledWindow["source"], "limit">;
};

/** The time a cost is worth at the window's rate, rounded up: rounding is always on the strict side. */
export function worthMs(window: ArrivalRate, cost: number): number {
  return cost === 1 ? window.intervalMs : ceilToGrid((cost * window.perMs) / window.source.limit);
}

/**
 * Rounding up each cost would let a bucket of 3/s hold 2.999999 after a second, and refuse the third request. The
 * tolerance is what the burst is worth, plus enough slack for about a thousand roundings: at most a microsecond, and
 * never more than a thousandth of one unit of cost.
 */
export function compileArrival(
  limit: number,
  perMs: number,
  burst: number,
): { intervalMs: number; fullMs: number; toleranceMs: number } {
  const exactIntervalMs = perMs / limit;
  const slackMs = floorToGrid(Math.min(2 ** -10, exactIntervalMs / 1024));
  const fullMs = ceilToGrid((burst * perMs) / limit);
  return { intervalMs: ceilToGrid(exactIntervalMs), fullMs, toleranceMs: fullMs + slackMs };
}

/** How far ahead of now an arrival is, as the limit sees it. */
export function aheadMs(window: CompiledWindow, arrivalMs: number, nowMs: number): number {
  if (arrivalMs >= 0) {
    const ahead = arrivalMs - nowMs;
    if (ahead <= 0) return 0;
    return ahead <= window.furthestMs ? ahead : window.fullMs;
  }
  const owed = -arrivalMs - nowMs;
  if (owed <= 0) return 0;
  return owed <= 2 * window.furthestMs ? owed : window.fullMs;
}

/**
 * The arrival to store in place of one that the limit cannot have left behind: it was lowered since, or a clock stepped
 * back. Undefined if nothing is wrong. A take stores it even if it denies: otherwise the subject would be locked out
 * until the old limit or the old clock had caught up.
 */
export function broughtBack(window: CompiledWindow, arrivalMs: number, nowMs: number): number | undefined {
  const furthestMs = (arrivalMs < 0 ? 2 : 1) * window.furthestMs;
  return Math.abs(arrivalMs) - nowMs > furthestMs ? nowMs + window.fullMs : undefined;
}

/** Whole units of cost that are left when the arrival is `aheadMs` ahead of now. */
export function unitsLeft(window: CompiledWindow, aheadMs: number): number {
  const units = Math.floor(((window.toleranceMs - aheadMs) * window.source.limit) / window.perMs);
  // The slack is for rounding, not for show; and debt is not a negative quantity of requests.
  return Math.min(Math.max(units, 0), Math.floor(window.capacity));
}

/** When one unit more than `remaining` is left; `remaining` is what `unitsLeft` returns for `aheadMs`. */
export function moreArrivesMs(window: CompiledWindow, aheadMs: number, remaining: number): number {
  const { capacity, toleranceMs, perMs, source } = window;
  if (remaining + 1 > capacity) return Number.POSITIVE_INFINITY;
  return Math.ceil(aheadMs - toleranceMs + ((remaining + 1) * perMs) / source.limit);
}

/** Writes into a new verdict, or into one that is reused. */
export function decideArrival(
  window: CompiledWindow,
  arrivalMs: number,
  cost: number,
  nowMs: number,
  into: WritableVerdict = createVerdict(),
): WindowVerdict {
  const ahead = aheadMs(window, arrivalMs, nowMs);
  const aheadAfter = ahead + worthMs(window, cost);
  const waitMs = aheadAfter - window.toleranceMs;
  const fits = cost > window.capacity ? "never" : waitMs <= 0 ? "now" : "later";
  into.fits = fits;
  into.remaining = unitsLeft(window, ahead);
  into.remainingAfter = unitsLeft(window, aheadAfter);
  into.retryAfterMs = fits === "now" ? 0 : fits === "later" ? Math.ceil(waitMs) : Number.POSITIVE_INFINITY;
  into.resetAfterMs = Math.ceil(ahead);
  into.resetAfterTakeMs = Math.ceil(aheadAfter);
  into.moreAfterMs = moreArrivesMs(window, ahead, into.remaining);
  into.moreAfterTakeMs = moreArrivesMs(window, aheadAfter, into.remainingAfter);
  into.queuePosition = window.leaky ? queuePosition(window, aheadAfter) : 0;
  into.queueDelayMs = window.leaky ? Math.ceil(ahead) : 0;
  into.word0 = nowMs + aheadAfter;
  return into;
}

/** The answer to a take from one window: `decideArrival` for when nothing else has to agree. */
export interface ArrivalTake {
  /** The window itself never answers `blocked`. */
  fits: WindowVerdict["fits"] | "blocked";
  remaining: number;
  retryAfterMs: number;
  resetAfterMs: number;
  moreAfterMs: number;
  queuePosition: number;
  queueDelayMs: number;
}

/**
 * Decides one window for good, into an object that is reused, and returns the arrival to store: the new one if the cost
 * fits, a corrected one, or undefined if nothing changes. The same answers as `decideArrival`, without what only
 * several windows need.
 */
export function takeArrival(
  window: CompiledWindow,
  arrivalMs: number,
  cost: number,
  nowMs: number,
  into: ArrivalTake,
): number | undefined {
  const ahead = aheadMs(window, arrivalMs, nowMs);
  const aheadAfter = ahead + worthMs(window, cost);
  const waitMs = aheadAfter - window.toleranceMs;
  if (window.leaky) {
    into.queuePosition = queuePosition(window, aheadAfter);
    into.queueDelayMs = Math.ceil(ahead);
  }
  const never = cost > window.capacity;
  if (waitMs <= 0 && !never) {
    into.fits = "now";
    into.remaining = unitsLeft(window, aheadAfter);
    into.retryAfterMs = 0;
    into.resetAfterMs = Math.ceil(aheadAfter);
    into.moreAfterMs = moreArrivesMs(window, aheadAfter, into.remaining);
    return nowMs + aheadAfter;
  }
  into.fits = never ? "never" : "later";
  into.remaining = unitsLeft(window, ahead);
  into.retryAfterMs = never ? Number.POSITIVE_INFINITY : Math.ceil(waitMs);
  into.resetAfterMs = Math.ceil(ahead);
  into.moreAfterMs = never ? moreArrivesMs(window, ahead, into.remaining) : into.retryAfterMs;
  return broughtBack(window, arrivalMs, nowMs);
}

export function queuePosition(window: CompiledWindow, aheadAfterMs: number): number {
  return Math.ceil((aheadAfterMs * window.source.limit) / window.perMs - 1e-3);
}

/** Takes unconditionally. Beyond the tolerance it becomes debt, which is bounded by what the capacity is worth. */
export function chargeArrival(window: CompiledWindow, arrivalMs: number, cost: number, nowMs: number): number {
  const ahead = aheadMs(window, arrivalMs, nowMs);
  const aheadAfter = ahead + worthMs(window, cost);
  if (aheadAfter <= window.toleranceMs) return nowMs + aheadAfter;
  // It may be further ahead already, because of another tier.
  return -(nowMs + Math.max(ahead, Math.min(aheadAfter, window.toleranceMs + worthMs(window, window.capacity))));
}

/** The time a credit is worth, rounded down: giving back is on the strict side as well. */
export function creditWorthMs(window: CompiledWindow, cost: number): number {
  return floorToGrid((cost * window.perMs) / window.source.limit);
}

/** Gives a cost back unconditionally, debt first and down to idle. Undefined if it is idle already. */
export function creditArrival(
  window: CompiledWindow,
  arrivalMs: number,
  cost: number,
  nowMs: number,
): GivenArrival | undefined {
  const ahead = aheadMs(window, arrivalMs, nowMs);
  if (ahead === 0) return undefined;
  const givenMs = Math.min(creditWorthMs(window, cost), ahead);
  const aheadAfter = ahead - givenMs;
  const isDebt = arrivalMs < 0 && aheadAfter > window.toleranceMs;
  return { arrivalMs: isDebt ? -(nowMs + aheadAfter) : nowMs + aheadAfter, givenMs };
}

/** What a give-back leaves behind, and how much time it gave. */
export interface GivenArrival {
  readonly arrivalMs: number;
  readonly givenMs: number;
}

/**
 * Gives a take back. Its cost is a stretch of time in the counter that ends at `takenArrivalMs`, the arrival that the
 * take left behind less whatever has been given back since; the part before now has drained. Only the rest is given. If
 * nothing is left of it, or the counter was corrected to below it, the give-back is void.
 */
export function giveArrival(
  window: ArrivalRate,
  arrivalMs: number,
  cost: number,
  takenArrivalMs: number,
  nowMs: number,
): GivenArrival | undefined {
  const endsMs = Math.abs(arrivalMs);
  if (nowMs >= takenArrivalMs || endsMs < takenArrivalMs) return undefined;
  const givenMs = Math.min(worthMs(window, cost), takenArrivalMs - nowMs);
  const leftMs = endsMs - givenMs;
  const isDebt = arrivalMs < 0 && leftMs - nowMs > window.toleranceMs;
  return { arrivalMs: isDebt ? -leftMs : leftMs, givenMs };
}
