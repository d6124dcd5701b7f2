import type { CompiledWindow } from "../limits/compiled-limit.ts";
import { alignedEndMs } from "./aligned-window.ts";
import { createVerdict, type WindowVerdict, type WritableVerdict } from "./window-verdict.ts";

/**
 * The sliding window counter: the current epoch-aligned window's count, and the previous one's weighted by how much of
 * it a window ending now still covers.
 *
 *     used = current + previous × (end − now) / per
 *
 * `idleMs` in the state is one window after the end of the current one, when neither count matters.
 */

export interface SlidingState {
  /** End of the current window. */
  readonly endMs: number;
  readonly current: number;
  readonly previous: number;
}

/**
 * A counter keeps the windows it began with until it is idle, even if the wall clock is moved; a fresh one is aligned
 * to the epoch.
 */
export function slidingStateAt(
  window: CompiledWindow,
  idleMs: number,
  current: number,
  previous: number,
  nowMs: number,
  originMs: number,
): SlidingState {
  if (nowMs >= idleMs) return { endMs: alignedEndMs(window.perMs, nowMs, originMs), current: 0, previous: 0 };
  const countedEndMs = idleMs - window.perMs;
  if (nowMs < countedEndMs) return { endMs: countedEndMs, current, previous };
  return { endMs: idleMs, current: 0, previous: current };
}

/** Whether a cost passes `afterMs` from now: the formula multiplied out, so that whole numbers stay whole. */
function fitsAfter(window: CompiledWindow, at: SlidingState, cost: number, nowMs: number, afterMs: number): boolean {
  const { capacity, perMs } = window;
  const untilEndMs = at.endMs - nowMs - afterMs;
  if (untilEndMs > 0) return at.previous * untilEndMs + (at.current + cost - capacity) * perMs <= 0;
  if (untilEndMs + perMs > 0) return at.current * (untilEndMs + perMs) + (cost - capacity) * perMs <= 0;
  return cost <= capacity;
}

/**
 * The wait in closed form. If the current count leaves room, the previous one has to fade to `capacity − current −
 * cost`; if it does not, the wait extends into the next window, where the current count becomes the one that fades.
 * Counts and lengths are whole numbers and instants are on the time grid, so if the quotient does not come out even the
 * wait does not either, and rounding up lands on the right millisecond.
 */
function waitMs(window: CompiledWindow, at: SlidingState, cost: number, nowMs: number): number {
  const { capacity, perMs } = window;
  const untilEndMs = at.endMs - nowMs;
  const room = capacity - at.current - cost;
  const exactMs =
    room >= 0
      ? untilEndMs - (room * perMs) / at.previous
      : untilEndMs + perMs - ((capacity - cost) * perMs) / at.current;
  return Math.ceil(exactMs);
}

function left(window: CompiledWindow, at: SlidingState, nowMs: number): number {
  const used = at.current + (at.previous * (at.endMs - nowMs)) / window.perMs;
  const units = Math.floor(window.capacity - used);
  if (fitsAfter(window, at, units + 1, nowMs, 0)) return Math.max(units + 1, 0);
  return Math.max(fitsAfter(window, at, units, nowMs, 0) ? units : units - 1, 0);
}

function resetMs(window: CompiledWindow, at: SlidingState, nowMs: number): number {
  if (at.current > 0) return Math.ceil(at.endMs + window.perMs - nowMs);
  return at.previous > 0 ? Math.ceil(at.endMs - nowMs) : 0;
}

/** When one unit more is left than `remaining`: the wait of a cost that large. */
function moreMs(window: CompiledWindow, at: SlidingState, remaining: number, nowMs: number): number {
  return remaining >= window.capacity ? Number.POSITIVE_INFINITY : waitMs(window, at, remaining + 1, nowMs);
}

/** Into a new verdict, or into one that is used again and again. */
export function decideSliding(
  window: CompiledWindow,
  idleMs: number,
  current: number,
  previous: number,
  cost: number,
  nowMs: number,
  originMs: number,
  into: WritableVerdict = createVerdict(),
): WindowVerdict {
  const at = slidingStateAt(window, idleMs, current, previous, nowMs, originMs);
  const after: SlidingState = { endMs: at.endMs, current: at.current + cost, previous: at.previous };
  const fits = cost > window.capacity ? "never" : fitsAfter(window, at, cost, nowMs, 0) ? "now" : "later";
  const remaining = left(window, at, nowMs);
  const remainingAfter = left(window, after, nowMs);
  into.fits = fits;
  into.remaining = remaining;
  into.remainingAfter = remainingAfter;
  into.retryAfterMs =
    fits === "now" ? 0 : fits === "later" ? waitMs(window, at, cost, nowMs) : Number.POSITIVE_INFINITY;
  into.resetAfterMs = resetMs(window, at, nowMs);
  into.resetAfterTakeMs = resetMs(window, after, nowMs);
  into.moreAfterMs = moreMs(window, at, remaining, nowMs);
  into.moreAfterTakeMs = moreMs(window, after, remainingAfter, nowMs);
  into.queuePosition = 0;
  into.queueDelayMs = 0;
  into.word0 = after.endMs + window.perMs;
  into.word1 = after.current;
  into.word2 = after.previous;
  return into;
}

/** Takes unconditionally; debt is bounded by one more capacity in the current window. */
export function chargeSliding(window: CompiledWindow, at: SlidingState, cost: number): number {
  return Math.max(at.current, Math.min(at.current + cost, 2 * window.capacity));
}

/**
 * Gives back unconditionally, down to nothing: first what the current window counted. A unit of the previous one counts
 * only for the part that has not faded, so more of them make up for the rest: as many as are worth no more than that.
 */
export function creditSliding(
  { perMs }: CompiledWindow,
  { endMs, current, previous }: SlidingState,
  cost: number,
  nowMs: number,
): Pick<SlidingState, "current" | "previous"> {
  const rest = cost - Math.min(cost, current);
  if (rest === 0) return { current: current - cost, previous };
  const untilEndMs = endMs - nowMs;
  const units = Math.floor((rest * perMs) / untilEndMs);
  const worthTooMuch = units * untilEndMs > rest * perMs;
  return { current: 0, previous: Math.max(previous - (worthTooMuch ? units - 1 : units), 0) };
}
