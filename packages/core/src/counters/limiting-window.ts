import type { WindowVerdict } from "../algorithms/window-verdict.ts";
import type { CompiledWindow } from "../match/compiled.ts";

/**
 * Which of two windows speaks: for a denial the one with the longer wait, for an allowance the one with the smaller
 * share left. A window that fits says less than one that does not.
 */
export function limitsMore(
  window: CompiledWindow,
  verdict: WindowVerdict,
  thanWindow: CompiledWindow,
  thanVerdict: WindowVerdict,
): boolean {
  if (verdict.retryAfterMs !== thanVerdict.retryAfterMs) return verdict.retryAfterMs > thanVerdict.retryAfterMs;
  return verdict.remainingAfter * thanWindow.capacity < thanVerdict.remainingAfter * window.capacity;
}
