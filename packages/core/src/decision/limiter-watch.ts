import type { Decision } from "./decision.ts";

/** What changes counters without being a check. */
export type CounterChange = "charge" | "give_back" | "block" | "reset" | "lease" | "hold";

/**
 * Lets a program follow what a limiter does, for as long as it sets these functions; while they are undefined, watching
 * costs a comparison per check. They must not throw.
 */
export interface LimiterWatch {
  /**
   * Called with each decision that counters made, and with the instant of it by their clock, in epoch milliseconds.
   * `order` is the decision's place among those of the same instant.
   */
  onDecided: ((decision: Decision, atMs: number, order: number) => void) | undefined;
  onChanged: ((change: CounterChange) => void) | undefined;
}

export function createLimiterWatch(): LimiterWatch {
  return { onDecided: undefined, onChanged: undefined };
}
