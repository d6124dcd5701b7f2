import { maxDrainMs } from "./parse-window.ts";
import type { Algorithm, Window } from "./policy.ts";

/** How much of a limit a node lets through by itself, where a policy fails `local` and says nothing more. */
export const defaultLocalShare = 0.5;

const withFractions: ReadonlySet<Algorithm> = new Set(["gcra", "token_bucket", "leaky_bucket"]);

/**
 * A window of a share (more than 0, at most 1) of the limit and of the burst. What lets anything through lets a cost of 1
 * through; what lets nothing through still does not. Algorithms that count in whole numbers get whole ones, rounded down.
 */
export function divideWindow(window: Window, algorithm: Algorithm, share: number = defaultLocalShare): Window {
  const { limit, burst, per } = window;
  if (burst === 0 || share === 1) return window;
  // Into a window of limit 0 nothing flows: it is a one-off quota of its burst.
  if (per.kind !== "ms" || limit === 0 || !withFractions.has(algorithm)) {
    const whole = Math.max(Math.floor(product(burst, share)), 1);
    return { ...window, limit: limit === 0 ? 0 : whole, burst: whole };
  }
  const some = Math.max(product(burst, share), 1);
  return { ...window, limit: Math.max(product(limit, share), (some * per.ms) / maxDrainMs), burst: some };
}

/** 100 × 0.29 is 29, and not 28.999999999999996. */
function product(amount: number, share: number): number {
  return Math.min(Number((amount * share).toPrecision(12)), amount);
}
