import { maxDrainMs } from "./parse-window.ts";
import type { Algorithm, Window } from "./policy.ts";

/** The share of a limit that a node lets through on its own, if a policy fails `local` without more settings. */
export const defaultLocalShare = 0.5;

const withFractions: ReadonlySet<Algorithm> = new Set(["gcra", "token_bucket", "leaky_bucket"]);

/**
 * A window with a share (more than 0, at most 1) of the limit and the burst. If a window lets anything through, its
 * share lets a cost of 1 through; if it lets nothing through, neither does its share. Algorithms that count in whole
 * numbers get whole ones, rounded down.
 */
export function divideWindow(window: Window, algorithm: Algorithm, share: number = defaultLocalShare): Window {
  const { limit, burst, per } = window;
  if (burst === 0 || share === 1) return window;
  // Nothing flows into a window of limit 0: it is a one-off quota of its burst.
  if (per.kind !== "ms" || limit === 0 || !withFractions.has(algorithm)) {
    const whole = Math.max(Math.floor(product(burst, share)), 1);
    return { ...window, limit: limit === 0 ? 0 : whole, burst: whole };
  }
  const some = Math.max(product(burst, share), 1);
  return { ...window, limit: Math.max(product(limit, share), (some * per.ms) / maxDrainMs), burst: some };
}

/** 100 × 0.29 is 29, not 28.999999999999996. */
function product(amount: number, share: number): number {
  return Math.min(Number((amount * share).toPrecision(12)), amount);
}
