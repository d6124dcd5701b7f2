import type { LimitOfSubject } from "../counters/counter-store.ts";
import { Heat } from "./heat.ts";

/** Fewer decisions in the time of a lease never pay for its call. */
const leastDecisions = 4;

/**
 * How often counters were asked for whose server is short of time: they are leased at lower rates than others. Made when
 * the first server is, because it takes half a megabyte and time for each question.
 */
export class StrainedHeat {
  readonly #findDecisions: (asked: LimitOfSubject) => number | undefined;
  readonly #leaseMs: number;
  #heat: Heat | undefined;

  constructor(findDecisions: (asked: LimitOfSubject) => number | undefined, leaseMs: number) {
    this.#findDecisions = findDecisions;
    this.#leaseMs = leaseMs;
  }

  /** From which rate a counter is hot; undefined if its server has time. */
  findHotPerSecond(asked: LimitOfSubject): number | undefined {
    const decisions = this.#findDecisions(asked);
    return decisions === undefined ? undefined : this.#perSecond(Math.max(decisions, leastDecisions));
  }

  /** Counts one more, and returns the rate as `Heat` does. */
  note(lo: number, hi: number, nowMs: number): number {
    this.#heat ??= new Heat(this.#perSecond(leastDecisions), nowMs);
    return this.#heat.note(lo, hi, nowMs);
  }

  #perSecond(decisions: number): number {
    return (decisions / this.#leaseMs) * 1000;
  }
}
