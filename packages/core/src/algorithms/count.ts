import type { CompiledWindow } from "../limits/compiled-limit.ts";
import { alignedEndMs } from "./aligned-window.ts";
import { createVerdict, type WindowVerdict, type WritableVerdict } from "./window-verdict.ts";

/**
 * Fixed windows: a count, and the instant its window ends. Windows are aligned to the epoch, or to the calendar of a
 * time zone; a one-off quota is a window that ends 30 days after it was last used.
 */

export const onceRetentionMs: number = 30 * 24 * 60 * 60 * 1000;

/** When the window that contains `nowMs` ends. `originMs` is the epoch time of the clock's origin. */
export function countEndMs(window: CompiledWindow, nowMs: number, originMs: number): number {
  if (window.perMs === Number.POSITIVE_INFINITY) return Math.ceil(nowMs) + onceRetentionMs;
  if (window.calendar !== undefined) return window.calendar(originMs + Math.floor(nowMs)).endMs - originMs;
  return alignedEndMs(window.perMs, nowMs, originMs);
}

/**
 * What still counts at an instant. A count keeps its end even if the wall clock is moved meanwhile and windows now end
 * at other times: a step of the clock gives nothing away, and locks no subject out for longer than its used-up window.
 */
export function runningCount(endMs: number, count: number, nowMs: number): number {
  return endMs > nowMs ? count : 0;
}

/** Into a new verdict, or into one that is used again and again. */
export function decideCount(
  window: CompiledWindow,
  endMs: number,
  count: number,
  cost: number,
  nowMs: number,
  originMs: number,
  into: WritableVerdict = createVerdict(),
): WindowVerdict {
  const once = window.perMs === Number.POSITIVE_INFINITY;
  const running = runningCount(endMs, count, nowMs);
  const keepsEnd = running > 0 && !once;
  const endAfterMs = keepsEnd ? endMs : countEndMs(window, nowMs, originMs);
  const after = running + cost;
  // A used-up one-off quota does not come back: the cost never fits, though less might.
  const never = cost > window.capacity || (once && after > window.capacity);
  const fits = never ? "never" : after <= window.capacity ? "now" : "later";
  into.fits = fits;
  into.remaining = Math.max(window.capacity - running, 0);
  into.remainingAfter = Math.max(window.capacity - after, 0);
  into.retryAfterMs = fits === "now" ? 0 : fits === "later" ? Math.ceil(endMs - nowMs) : Number.POSITIVE_INFINITY;
  into.resetAfterMs = running === 0 ? 0 : Math.ceil(endMs - nowMs);
  into.resetAfterTakeMs = Math.ceil(endAfterMs - nowMs);
  into.moreAfterMs = once || running === 0 ? Number.POSITIVE_INFINITY : Math.ceil(endMs - nowMs);
  into.moreAfterTakeMs = once ? Number.POSITIVE_INFINITY : Math.ceil(endAfterMs - nowMs);
  into.queuePosition = 0;
  into.queueDelayMs = 0;
  into.word0 = endAfterMs;
  into.word1 = after;
  return into;
}

/** Takes unconditionally; debt is bounded by one more capacity, and ends with the window. */
export function chargeCount(window: CompiledWindow, running: number, cost: number): number {
  return Math.max(running, Math.min(running + cost, 2 * window.capacity));
}

/** Gives back unconditionally, down to nothing. */
export function creditCount(running: number, cost: number): number {
  return Math.max(running - cost, 0);
}
