import type { CompiledWindow } from "../limits/compiled-limit.ts";
import { countEndMs, runningCount } from "./count.ts";
import { createVerdict, type WindowVerdict, type WritableVerdict } from "./window-verdict.ts";

/**
 * How a fixed window of distinct values stands to one more value. A value that was seen in this window passes whatever
 * the count; a new one passes while the count is below the limit. `remaining` is how many new values may still come.
 */
export function decideDistinct(
  window: CompiledWindow,
  endMs: number,
  values: number,
  isNew: boolean,
  nowMs: number,
  originMs: number,
  into: WritableVerdict = createVerdict(),
): WindowVerdict {
  const running = runningCount(endMs, values, nowMs);
  const endAfterMs = running > 0 ? endMs : countEndMs(window, nowMs, originMs);
  const after = running + (isNew ? 1 : 0);
  const leftMs = Math.ceil(endMs - nowMs);
  into.fits = !isNew || after <= window.capacity ? "now" : "later";
  into.remaining = Math.max(window.capacity - running, 0);
  into.remainingAfter = Math.max(window.capacity - after, 0);
  into.retryAfterMs = into.fits === "now" ? 0 : leftMs;
  into.resetAfterMs = running === 0 ? 0 : leftMs;
  into.resetAfterTakeMs = Math.ceil(endAfterMs - nowMs);
  into.moreAfterMs = running === 0 ? Number.POSITIVE_INFINITY : leftMs;
  into.moreAfterTakeMs = Math.ceil(endAfterMs - nowMs);
  into.queuePosition = 0;
  into.queueDelayMs = 0;
  into.word0 = endAfterMs;
  into.word1 = after;
  return into;
}
