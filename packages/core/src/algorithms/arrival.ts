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
 * A debt (see `chargeArrival`) is stored as the negated instant. Without that mark an arrival further ahead than any limit
 * of the counter allows cannot come from one: it was lowered or the clock stepped back, and it is brought back to what the
 * whole burst is worth, a counter that is just used up. Nobody is locked out by an edit or a clock.
 */

/** The instant nothing was ever counted. */
export const neverArrived = 0;

/** The time a cost is worth at the window's rate, rounded up: rounding is always on the strict side. */
export function worthMs(window: CompiledWindow, cost: number): number {
  return cost === 1 ? window.intervalMs : ceilToGrid((cost * window.perMs) / window.source.limit);
}

/**
 * Rounding up each cost would let a bucket of 3/s hold 2.999999 after a second, and refuse the third request. The
 * tolerance is what the burst is worth, and enough slack for about a thousand roundings: at most a microsecond, and never
 * more than a thousandth of one unit of cost.
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
 * The arrival to keep in place of one that the limit cannot have left behind: it was lowered since, or a clock stepped back.
 * Undefined where nothing is wrong. A take keeps it even where it denies: otherwise the counter would be found just used up
 * again and again, until the old limit or the old clock had caught up, and the subject be locked out.
 */
export function broughtBack(window: CompiledWindow, arrivalMs: number, nowMs: number): number | undefined {
  const furthestMs = (arrivalMs < 0 ? 2 : 1) * window.furthestMs;
  return Math.abs(arrivalMs) - nowMs > furthestMs ? nowMs + window.fullMs : undefined;
}

function left(window: CompiledWindow, aheadMs: number): number {
  const units = Math.floor(((window.toleranceMs - aheadMs) * window.source.limit) / window.perMs);
  // The slack is for rounding, not for show; and debt is no negative quantity of requests.
  return Math.min(Math.max(units, 0), Math.floor(window.capacity));
}

/** When one unit more is left than `remaining`, which is what `left` says of being so far ahead. */
export function moreArrivesMs(window: CompiledWindow, aheadMs: number, remaining: number): number {
  const { capacity, toleranceMs, perMs, source } = window;
  if (remaining + 1 > capacity) return Number.POSITIVE_INFINITY;
  return Math.ceil(aheadMs - toleranceMs + ((remaining + 1) * perMs) / source.limit);
}

/** Into a new verdict, or into one that is used again and again. */
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
  into.remaining = left(window, ahead);
  into.remainingAfter = left(window, aheadAfter);
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

/** What a take of one window answers: `decideArrival` for when nothing else has to agree. */
export interface ArrivalTake {
  /** `blocked` is never by the window itself. */
  fits: WindowVerdict["fits"] | "blocked";
  remaining: number;
  retryAfterMs: number;
  resetAfterMs: number;
  moreAfterMs: number;
  queuePosition: number;
  queueDelayMs: number;
}

/**
 * Decides one window for good, into an object that is used again and again, and gives the arrival to keep: the new one if the
 * cost fits, one that was brought back, or undefined where nothing changes. The same answers as `decideArrival` without what
 * only several windows need.
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
    into.remaining = left(window, aheadAfter);
    into.retryAfterMs = 0;
    into.resetAfterMs = Math.ceil(aheadAfter);
    into.moreAfterMs = moreArrivesMs(window, aheadAfter, into.remaining);
    return nowMs + aheadAfter;
  }
  into.fits = never ? "never" : "later";
  into.remaining = left(window, ahead);
  into.retryAfterMs = never ? Number.POSITIVE_INFINITY : Math.ceil(waitMs);
  into.resetAfterMs = Math.ceil(ahead);
  into.moreAfterMs = never ? moreArrivesMs(window, ahead, into.remaining) : into.retryAfterMs;
  return broughtBack(window, arrivalMs, nowMs);
}

export function queuePosition(window: CompiledWindow, aheadAfterMs: number): number {
  return Math.ceil((aheadAfterMs * window.source.limit) / window.perMs - 1e-3);
}

/** Takes unconditionally. Beyond the tolerance it is debt, and debt is bounded by what the capacity is worth. */
export function chargeArrival(window: CompiledWindow, arrivalMs: number, cost: number, nowMs: number): number {
  const ahead = aheadMs(window, arrivalMs, nowMs);
  const aheadAfter = ahead + worthMs(window, cost);
  if (aheadAfter <= window.toleranceMs) return nowMs + aheadAfter;
  // It may be further ahead already, by another tier.
  return -(nowMs + Math.max(ahead, Math.min(aheadAfter, window.toleranceMs + worthMs(window, window.capacity))));
}

/** The time a credit is worth, rounded down: what is given back is on the strict side as well. */
export function creditWorthMs(window: CompiledWindow, cost: number): number {
  return floorToGrid((cost * window.perMs) / window.source.limit);
}

/** Gives a cost back unconditionally: debt shrinks first, and idle is the end of it. Undefined for what is idle already. */
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
 * Gives a take back. The cost stands in the counter as a stretch of time that ends at `takenArrivalMs`, the arrival that
 * the take left behind less whatever has been given back since; what now has passed of the stretch has drained. Only the
 * rest is given. If nothing is left of it, or the counter has been brought back below it, the give-back is void.
 */
export function giveArrival(
  window: CompiledWindow,
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
