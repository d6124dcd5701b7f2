import type { CompiledWindow } from "../match/compiled.ts";
import { alignedEndMs } from "./aligned-window.ts";
import type { WindowVerdict } from "./window-verdict.ts";

/**
 * Fixed windows: a count, and the instant its window ends. Windows are aligned to the epoch, or to the calendar of a
 * time zone; a one-off quota is a window that ends 30 days after it was last used.
 */

export const onceRetentionMs: number = 30 * 24 * 60 * 60 * 1000;

/** When the window that holds `nowMs` ends. `originMs` is the epoch time of the clock's origin. */
export function countEndMs(window: CompiledWindow, nowMs: number, originMs: number): number {
  if (window.perMs === Number.POSITIVE_INFINITY) return nowMs + onceRetentionMs;
  if (window.calendar !== undefined) return window.calendar(originMs + Math.floor(nowMs)).endMs - originMs;
  return alignedEndMs(window.perMs, nowMs, originMs);
}

/**
 * What is counted in the window that ends at `currentEndMs`. A count that ends later than that was made before the
 * clock stepped back: it is kept, now as the current window's, so a step gives nothing and locks nobody out.
 */
export function runningCount(
  window: CompiledWindow,
  endMs: number,
  count: number,
  nowMs: number,
  currentEndMs: number,
): number {
  const runs = window.perMs === Number.POSITIVE_INFINITY ? endMs > nowMs : endMs >= currentEndMs;
  return runs ? count : 0;
}

export function decideCount(
  window: CompiledWindow,
  endMs: number,
  count: number,
  cost: number,
  nowMs: number,
  originMs: number,
): WindowVerdict {
  const once = window.perMs === Number.POSITIVE_INFINITY;
  const currentEndMs = countEndMs(window, nowMs, originMs);
  const running = runningCount(window, endMs, count, nowMs, currentEndMs);
  const after = running + cost;
  // A one-off quota that is used up does not come back: the rest never fits, though less might.
  const never = cost > window.capacity || (once && after > window.capacity);
  const fits = never ? "never" : after <= window.capacity ? "now" : "later";
  const untilEndMs = Math.ceil(currentEndMs - nowMs);
  return {
    fits,
    remaining: Math.max(window.capacity - running, 0),
    remainingAfter: Math.max(window.capacity - after, 0),
    retryAfterMs: fits === "now" ? 0 : fits === "later" ? untilEndMs : Number.POSITIVE_INFINITY,
    resetAfterMs: running === 0 ? 0 : once ? Math.ceil(endMs - nowMs) : untilEndMs,
    resetAfterTakeMs: untilEndMs,
    queuePosition: 0,
    queueDelayMs: 0,
    word0: currentEndMs,
    word1: after,
    word2: 0,
  };
}

/** Takes unconditionally; debt is bounded by one more capacity, and ends with the window. */
export function chargeCount(window: CompiledWindow, running: number, cost: number): number {
  return Math.max(running, Math.min(running + cost, 2 * window.capacity));
}
