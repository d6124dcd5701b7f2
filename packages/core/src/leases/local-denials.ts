import type { LimitOutcome, ResolvedLimit } from "../counters/counter-store.ts";
import type { CompiledWindow } from "../limits/compiled-limit.ts";

/** How many denials are remembered. A newer one takes the place of an older one. */
const places = 8192;

/** A bucket that holds at least this much loses nothing if it is asked up to a millisecond late. */
const deepEnoughMs = 10;

interface Denial {
  readonly lo: number;
  readonly hi: number;
  /** The windows of the policy and tier that denied: it does not hold under others. */
  readonly windows: readonly CompiledWindow[];
  readonly cost: number;
  readonly untilMs: number;
  readonly heardMs: number;
  readonly atMs: number;
  readonly outcome: LimitOutcome;
}

/**
 * Subjects that the central store denied a moment ago. Until they may retry, and for a second at most, they are denied
 * here for costs at least as large: a client that does not wait costs the central store next to nothing. Bounded; a
 * forgotten denial only means asking again.
 */
export class LocalDenials {
  readonly #maxMs: number;
  readonly #denials: (Denial | undefined)[] = [];
  #latestMs = 0;

  constructor(maxMs: number) {
    this.#maxMs = maxMs;
  }

  /** Whether anything is remembered: almost always not. */
  isEmpty(nowMs: number): boolean {
    return nowMs >= this.#latestMs;
  }

  /**
   * `askedMs` is from before the central store was asked, so that the end is never later than the retry time. That is
   * rounded up to whole milliseconds; a bucket too shallow to hold what flows in during one is asked that much sooner.
   */
  note(lo: number, hi: number, limit: ResolvedLimit, outcome: LimitOutcome, askedMs: number, atMs: number): void {
    const { window, retryAfterMs } = outcome;
    const isShallow = window.kind === "arrival" && window.fullMs < deepEnoughMs;
    const forMs = Math.min(isShallow ? retryAfterMs - 1 : retryAfterMs, this.#maxMs);
    if (forMs <= 0) return;
    if (this.#denials.length === 0) for (let i = 0; i < places; i++) this.#denials.push(undefined);
    const { windows, cost } = limit;
    const untilMs = askedMs + forMs;
    this.#latestMs = Math.max(this.#latestMs, untilMs);
    this.#denials[lo & (places - 1)] = { lo, hi, windows, cost, untilMs, heardMs: askedMs, atMs, outcome };
  }

  find(
    lo: number,
    hi: number,
    windows: readonly CompiledWindow[],
    cost: number,
    nowMs: number,
  ): LocalDenial | undefined {
    const denial = this.#denials[lo & (places - 1)];
    if (denial === undefined || denial.lo !== lo || denial.hi !== hi || nowMs >= denial.untilMs) return undefined;
    if (denial.windows !== windows || cost < denial.cost) return undefined;
    const { outcome } = denial;
    if (outcome.fits !== "never" && windows.some(({ capacity }) => cost > capacity)) return undefined;
    // A larger cost waits longer: for a bucket it is known how much, for the sliding kinds the central store says so
    // when this one's time comes.
    const { window } = outcome;
    const moreMs = window.kind === "arrival" && outcome.fits === "later" ? (cost - denial.cost) * window.intervalMs : 0;
    const passedMs = nowMs - denial.heardMs - moreMs;
    return {
      atMs: denial.atMs + nowMs - denial.heardMs,
      outcome: {
        ...outcome,
        retryAfterMs: Math.max(Math.ceil(outcome.retryAfterMs - passedMs), 1),
        resetAfterMs: Math.max(Math.ceil(outcome.resetAfterMs - passedMs - moreMs), 0),
        moreAfterMs: Math.max(Math.ceil(outcome.moreAfterMs - passedMs), 1),
      },
    };
  }

  forget(lo: number, hi: number): void {
    const denial = this.#denials[lo & (places - 1)];
    if (denial?.lo === lo && denial.hi === hi) this.#denials[lo & (places - 1)] = undefined;
  }
}

export interface LocalDenial {
  readonly outcome: LimitOutcome;
  readonly atMs: number;
}
