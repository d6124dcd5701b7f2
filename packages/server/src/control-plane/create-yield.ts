import { setImmediate as turn } from "node:timers/promises";

/** How long decisions may wait for one stretch of longer work. */
const stretchMs = 2;

/**
 * For loops over everything that is stored: `await yieldIfDue()` in each round lets decisions have their turn whenever
 * the loop has run for two milliseconds.
 */
export function createYield(): () => Promise<void> {
  let sinceMs = performance.now();
  return async () => {
    if (performance.now() - sinceMs < stretchMs) return;
    await turn();
    sinceMs = performance.now();
  };
}
