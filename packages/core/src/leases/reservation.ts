import type { Clock } from "../clock.ts";
import type { LimitOutcome, ResolvedLimit, TakeAnswer } from "../counters/counter-store.ts";
import type { CompiledWindow } from "../limits/compiled-limit.ts";
import type { HeldLeases } from "./held-leases.ts";
import type { LeasedCounter } from "./leased-counter.ts";
import type { LocalDenial } from "./local-denials.ts";

/** A leased counter with units set aside for one request. */
interface Reserved {
  readonly index: number;
  readonly leased: LeasedCounter;
  readonly era: number;
}

/** Which limit was denied here, and how. */
interface Denied extends LocalDenial {
  readonly index: number;
}

/**
 * The units that one request with several limits sets aside from leases in hand, until it is known whether all of it
 * passes:
 *
 *     reserve each limit ─► settle: all spent, or all back in hand ─► fetch leases that are due
 *
 * The limits that no lease covers are the `rest`, which the central store decides.
 */
export class Reservation {
  /** Indexes of limits that are not in hand. */
  readonly rest: number[] = [];
  denied: Denied | undefined;
  readonly #limits: readonly ResolvedLimit[];
  readonly #held: HeldLeases;
  readonly #reserved: Reserved[] = [];
  readonly #due: LeasedCounter[] = [];

  constructor(limits: readonly ResolvedLimit[], held: HeldLeases) {
    this.#limits = limits;
    this.#held = held;
  }

  /** Whether all of it is in hand. */
  get isWhole(): boolean {
    return this.rest.length === 0;
  }

  /** Sets aside a limit's cost. False if the lease has too little. */
  reserve(index: number, leased: LeasedCounter, nowMs: number): boolean {
    const era = leased.lease.reserve(this.#limits[index]!.cost, nowMs);
    if (leased.lease.isDue(nowMs)) this.#due.push(leased);
    if (era === -1) return false;
    this.#reserved.push({ index, leased, era });
    return true;
  }

  /** Ends it, and returns how many units were spent. */
  settle(isSpent: (limit: ResolvedLimit) => boolean, clock: Clock): number {
    let units = 0;
    for (const { leased, index, era } of this.#reserved) {
      const limit = this.#limits[index]!;
      const spent = isSpent(limit);
      leased.lease.settle(era, limit.cost, spent);
      if (spent) units += limit.cost;
      // The lease has ended meanwhile, and this is left over.
      if (leased.gone && !leased.lease.asking) this.#held.returnHeld(leased, clock.nowMs());
    }
    return units;
  }

  /** Only after it is settled, so that the central store learns what was spent. */
  fetchDue(nowMs: number): void {
    for (const leased of this.#due) if (leased.lease.isDue(nowMs)) this.#held.fetch(leased, nowMs);
  }

  /** The answer if all of it was spent here. */
  spentAnswer(nowMs: number): TakeAnswer {
    const outcomes: LimitOutcome[] = [];
    this.#describe(outcomes, nowMs);
    return { taken: true, atMs: nowMs + this.#held.aheadMs, outcomes, receipt: undefined, replayed: false };
  }

  /** The answer if it was denied here. */
  deniedAnswer(denied: Denied, nowMs: number): TakeAnswer {
    const outcomes = this.#limits.map(({ windows }) => assumedOutcome(windows[0]!));
    this.#describe(outcomes, nowMs);
    outcomes[denied.index] = denied.outcome;
    return { taken: false, atMs: denied.atMs, outcomes, receipt: undefined, replayed: false };
  }

  /** The central store's answer, completed with the limits that it was not asked about. */
  combinedAnswer(central: TakeAnswer, nowMs: number): TakeAnswer {
    if (this.#reserved.length === 0) return central;
    const outcomes: LimitOutcome[] = [];
    for (let i = 0; i < this.rest.length; i++) outcomes[this.rest[i]!] = central.outcomes[i]!;
    this.#describe(outcomes, nowMs);
    return { ...central, outcomes };
  }

  #describe(outcomes: LimitOutcome[], nowMs: number): void {
    for (const { index, leased } of this.#reserved)
      outcomes[index] = this.#held.describe(leased, this.#limits[index]!.cost, nowMs);
  }
}

/** The outcome of a limit next to one that denies, which was not examined; see `TakeOptions.details`. */
function assumedOutcome(window: CompiledWindow): LimitOutcome {
  return {
    fits: "now",
    window,
    remaining: Math.floor(window.capacity),
    windowRemaining: Math.floor(window.capacity),
    retryAfterMs: 0,
    resetAfterMs: 0,
    moreAfterMs: Number.POSITIVE_INFINITY,
    queuePosition: 0,
    queueDelayMs: 0,
  };
}
