import type { CompiledWindow, ResolvedLimit } from "sluice";
import { findCode, kindNumber } from "./ask/window-code.ts";

/** Whether one window is what the script of arrivals takes. */
export function isOneArrival({ windows, limit }: Pick<ResolvedLimit, "windows" | "limit">): boolean {
  return windows.length === 1 && !limit.blockable && isArrival(windows[0]!);
}

function isArrival(window: CompiledWindow): boolean {
  return window.charges && findCode(window).kind === kindNumber.arrival;
}

/** The most windows of one request that go by the script of arrivals. */
const mostWindows = 16;

/** Whether all windows of several limits are what the script of arrivals takes, and no two of them share a counter. */
export function areArrivals(limits: readonly ResolvedLimit[]): boolean {
  let count = 0;
  for (let i = 0; i < limits.length; i++) {
    const { limit, windows, subject, group } = limits[i]!;
    count += windows.length;
    if (group !== 0 || limit.blockable || limit.policy.countDenials || count > mostWindows) return false;
    for (let w = 0; w < windows.length; w++) {
      const window = windows[w]!;
      if (!isArrival(window)) return false;
      for (let other = 0; other < w; other++) if (windows[other]!.identity === window.identity) return false;
      for (let other = 0; other < i; other++) if (isCountedIn(limits[other]!, window, subject)) return false;
    }
  }
  // A request of no limits at all has no key to be asked about.
  return count > 0;
}

/** Whether a limit is counted in the counter of this window and subject. */
function isCountedIn(limit: ResolvedLimit, window: CompiledWindow, subject: string): boolean {
  return limit.subject === subject && limit.windows.some(({ identity }) => identity === window.identity);
}
