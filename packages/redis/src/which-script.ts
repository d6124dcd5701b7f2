import type { CompiledWindow, ResolvedLimit } from "sluice/store";
import { findCode, kindNumber } from "./ask/window-code.ts";

/** Whether the arrivals script can take this one window. */
export function isOneArrival({ windows, limit }: Pick<ResolvedLimit, "windows" | "limit">): boolean {
  return windows.length === 1 && !limit.blockable && isArrival(windows[0]!);
}

function isArrival(window: CompiledWindow): boolean {
  return window.charges && findCode(window).kind === kindNumber.arrival;
}

/** A fixed or sliding window. The bounds of a calendar's window depend on the server's time: the general script checks them. */
function isCounted({ charges, kind, calendar }: CompiledWindow): boolean {
  return charges && (kind === "sliding" || (kind === "count" && calendar === undefined));
}

/** The most windows of one request that the dedicated scripts take. */
const mostWindows = 16;

/** Whether the arrivals script can take all windows of several limits. */
export function areArrivals(limits: readonly ResolvedLimit[]): boolean {
  return findTakeScript(limits) === "takeArrivals";
}

/**
 * The dedicated script that can take all windows of several limits, none of which may share a counter with another. Undefined: only
 * the general script can.
 */
export function findTakeScript(limits: readonly ResolvedLimit[]): "takeArrivals" | "takeCounts" | undefined {
  let count = 0;
  let script: "takeArrivals" | "takeCounts" = "takeArrivals";
  for (let i = 0; i < limits.length; i++) {
    const { limit, windows, subject, group } = limits[i]!;
    count += windows.length;
    if (group !== 0 || limit.blockable || limit.policy.countDenials || count > mostWindows) return undefined;
    for (let w = 0; w < windows.length; w++) {
      const window = windows[w]!;
      if (!isArrival(window)) {
        if (!isCounted(window)) return undefined;
        script = "takeCounts";
      }
      for (let other = 0; other < w; other++) if (windows[other]!.identity === window.identity) return undefined;
      for (let other = 0; other < i; other++) if (isCountedIn(limits[other]!, window, subject)) return undefined;
    }
  }
  // A request without limits has no key to ask about.
  return count > 0 ? script : undefined;
}

/** Whether a limit is counted in the counter of this window and subject. */
function isCountedIn(limit: ResolvedLimit, window: CompiledWindow, subject: string): boolean {
  return limit.subject === subject && limit.windows.some(({ identity }) => identity === window.identity);
}
