import type { CallLater, Clock } from "../clock.ts";
import { isLeasable, leaseAllowance, leastAllowance } from "../counters/allowance.ts";
import type { CentralCounters, LeaseAnswer, LeaseAsk, LimitOutcome, ResolvedLimit } from "../counters/counter-store.ts";
import { createOneOutcome, type OneOutcome } from "../counters/single-takes.ts";
import { StoreUnavailable } from "../counters/store-unavailable.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import { outcomeFrom } from "./central-take.ts";
import { Heat } from "./heat.ts";
import { Lease } from "./lease.ts";
import { LeaseHolder, type LeaseOutcome } from "./lease-holder.ts";
import { LeaseTable } from "./lease-table.ts";
import { isAlike, LeasedCounter } from "./leased-counter.ts";
import type { LeasingOptions } from "./leased-counters-options.ts";
import { StrainedHeat } from "./strained-heat.ts";

export interface HeldLeasesOptions extends LeasingOptions {
  readonly clock: Clock;
  readonly callLater: CallLater;
}

/** Every lease is visited once a second, a tenth of them at a time. */
const sweepEveryMs = 100;
const sweepParts = 10;
/**
 * If the units in hand last for the first, the next are fetched within the second, so that calls can travel together.
 */
const unhurriedMs = 100;
const gatherMs = 10;
/**
 * What pays for a lease's call: some seven decisions if many checks travel to the central store together, four if 16
 * do, and less than one if each travels alone. A counter asked for less often in the time of a lease is not leased.
 */
const payingDecisions = 7;
/** Below this share of the hot rate a lease is given back. Well below it, or leases would come and go. */
const coolShare = 0.25;
/** Up to this many leases, `stats` visits each. */
const fewLeases = 1000;
/** At most this many leases are given back at once. */
const callsTogether = 500;

/**
 * This node's leases on a central store's counters: which counters are hot enough for one, whose lease has cooled, and
 * which calls wait to travel together. `LeaseHolder` describes their life.
 */
export class HeldLeases {
  readonly #centre: CentralCounters;
  readonly #options: HeldLeasesOptions;
  readonly #table: LeaseTable<LeasedCounter>;
  readonly #holder: LeaseHolder<LeasedCounter, LeaseAnswer>;
  readonly #heat: Heat;
  readonly #strained: StrainedHeat | undefined;
  readonly #hotPerSecond: number;
  readonly #coolPerSecond: number;
  #leasing: boolean;
  #aheadMs = 0;
  #one: OneOutcome | undefined;
  #sweepPart = 0;
  /** What this sweep has seen so far, and what the last one saw. */
  #sweeping: InHand = { tokens: 0, stale: 0 };
  #lastSwept: InHand | undefined;
  #gathered: LeasedCounter[] = [];
  #cancelFetches: (() => void) | undefined;
  #draining: Promise<void> | undefined;

  constructor(centre: CentralCounters, options: HeldLeasesOptions) {
    this.#centre = centre;
    this.#options = options;
    this.#leasing = options.leasing;
    this.#table = new LeaseTable(options.maxLeases);
    const { hotPerSecond, strainedDecisions, times, clock, callLater } = options;
    this.#hotPerSecond = Math.max(hotPerSecond, (payingDecisions / times.leaseMs) * 1000);
    this.#coolPerSecond = options.coolPerSecond ?? this.#hotPerSecond * coolShare;
    this.#heat = new Heat(this.#hotPerSecond, clock.nowMs());
    this.#strained = strainedDecisions && new StrainedHeat(strainedDecisions, times.leaseMs);
    const table = this.#table;
    this.#holder = new LeaseHolder(
      { clock, callLater, sweepEveryMs },
      {
        get size() {
          return table.size;
        },
        unsentGiveBack: "drop",
        send: (leased, ask, settle) => void this.#send(leased, ask, settle),
        hear: (leased, answer, askedMs) => {
          leased.hear(answer, askedMs);
          this.#aheadMs = answer.atMs - askedMs;
        },
        onLeave: (leased) => table.delete(leased),
        sweep: (nowMs) => this.#sweep(nowMs),
        onSweepEnd: () => this.#endSweep(),
      },
    );
  }

  /** False as soon as `drain` is called. */
  get leasing(): boolean {
    return this.#leasing;
  }

  /** How far the central store's clock, in epoch milliseconds, is ahead of this node's. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  get stats(): HeldLeasesStats {
    const { fetches, refused, failedFetches, granted, returned, lost } = this.#holder.counts;
    return {
      leases: this.#table.size,
      ...this.#inHand(),
      fetches,
      refused,
      failed: failedFetches,
      granted,
      returned,
      lost,
    };
  }

  /** Visiting every lease takes a few milliseconds for each ten thousand: for many, this is what the last sweep saw. */
  #inHand(): InHand {
    if (this.#table.size > fewLeases && this.#lastSwept !== undefined) return this.#lastSwept;
    const nowMs = this.#options.clock.nowMs();
    const inHand = { tokens: 0, stale: 0 };
    this.#table.forEach(({ lease }) => {
      addTo(inHand, lease, nowMs);
    });
    return inHand;
  }

  find(lo: number, hi: number): LeasedCounter | undefined {
    return this.#table.size === 0 ? undefined : this.#table.find(lo, hi);
  }

  /**
   * How a counter stands as far as this node knows: the central store's last answer, brought up to now, plus what is in
   * hand.
   */
  describe(leased: LeasedCounter, cost: number, nowMs: number): LimitOutcome {
    const outcome = outcomeFrom(this.describeOne(leased, cost, nowMs));
    const remaining = leased.leastLeft(outcome.remaining);
    return remaining === outcome.remaining ? outcome : { ...outcome, remaining };
  }

  /** The same for a counter of one window; valid until the next call. */
  describeOne(leased: LeasedCounter, cost: number, nowMs: number): Readonly<OneOutcome> {
    this.#one ??= createOneOutcome(leased.window);
    leased.describe(cost, nowMs, this.#one);
    this.#one.atMs = nowMs + this.#aheadMs;
    return this.#one;
  }

  /** Begins a lease if it is worth its calls, or a policy asks for it. */
  leaseIfHot(asked: ResolvedLimit, lo: number, hi: number, nowMs: number): void {
    if (!this.#leasing || this.#table.isFull || !isLeasable(asked)) return;
    const { policy } = asked.limit;
    let perSecond = this.#heat.note(lo, hi, nowMs);
    const hot = this.#strained?.findHotPerSecond(asked);
    if (hot !== undefined) perSecond = Math.max(perSecond, this.#strained!.note(lo, hi, nowMs));
    const isHot = perSecond >= this.#hotNow(Math.min(this.#hotPerSecond, hot ?? this.#hotPerSecond));
    if (!isHot && policy.counters !== "leased") return;
    const allowance = leaseAllowance(asked);
    if (allowance < leastAllowance(policy.counters)) return;
    const leased = new LeasedCounter(asked, lo, hi, new Lease(this.#options.times, allowance, perSecond, nowMs), nowMs);
    this.#table.add(leased);
    this.#holder.sweepLater();
    this.fetch(leased, nowMs);
  }

  /**
   * The fewer places are left, the hotter a counter has to be: the hottest find one, however many lukewarm ones came
   * before.
   */
  #hotNow(hotPerSecond: number): number {
    return hotPerSecond / (1 - (this.#table.size / this.#options.maxLeases) ** 8);
  }

  /**
   * Whether these windows may spend a lease granted under others: they may if the policies were only rewritten. What a
   * unit is worth to the counters depends on the numbers, so under different ones it is neither spent nor given back.
   * After an edit the lease is given back at once; if it belongs to another tier or to another subject's override, it
   * stays until it cools.
   */
  adopts(leased: LeasedCounter, limit: CompiledLimit, windows: readonly CompiledWindow[], nowMs: number): boolean {
    if (!isAlike(leased, { limit, windows })) {
      if (leased.limit !== limit) this.#holder.leave(leased, nowMs);
      return false;
    }
    leased.window = windows[leased.windows.indexOf(leased.window)] ?? windows[0]!;
    leased.limit = limit;
    leased.windows = windows;
    return true;
  }

  /** Asks for more if that is due: at once or, if it can wait, in a moment and together with others. */
  fetch(leased: LeasedCounter, nowMs: number): void {
    if (!this.#leasing || leased.gone) return;
    if (leased.lease.canWait(unhurriedMs, nowMs)) this.#gather(leased);
    else this.#holder.ask(leased, nowMs);
  }

  #gather(leased: LeasedCounter): void {
    if (leased.gathered) return;
    leased.gathered = true;
    this.#gathered.push(leased);
    this.#cancelFetches ??= this.#options.callLater(() => {
      this.#cancelFetches = undefined;
      this.#fetchGathered();
    }, gatherMs);
  }

  #fetchGathered(): void {
    const nowMs = this.#options.clock.nowMs();
    const gathered = this.#gathered;
    this.#gathered = [];
    for (const leased of gathered) {
      leased.gathered = false;
      // It may have become urgent meanwhile.
      if (!leased.gone && leased.lease.isDue(nowMs)) this.#holder.ask(leased, nowMs);
    }
  }

  /** Gives back what is left of reserved units after a lease has ended. No call may be in flight for it. */
  returnHeld(leased: LeasedCounter, nowMs: number): void {
    this.#holder.giveBack(leased, nowMs);
  }

  async #send(
    { limit, windows, subject }: LeasedCounter,
    ask: LeaseAsk,
    settle: (outcome: LeaseOutcome<LeaseAnswer>) => void,
  ): Promise<void> {
    let outcome: LeaseOutcome<LeaseAnswer>;
    try {
      const value = await this.#centre.lease([{ limit, windows, subject, cost: 1, group: 0 }], ask);
      outcome = { kind: "answer", value };
    } catch (error) {
      // Outages are reported by the calls for decisions; here it matters whether the store got this call.
      outcome = { kind: "unanswered", mayBeDone: !(error instanceof StoreUnavailable) || error.mayBeDone };
    }
    settle(outcome);
  }

  /** The next sweep begins with the first part. */
  #endSweep(): void {
    this.#sweepPart = 0;
    this.#sweeping = { tokens: 0, stale: 0 };
    this.#lastSwept = undefined;
  }

  /**
   * Ends leases that cooled. While the central store does not answer they stay, because they are all there is to decide
   * by, and it is asked.
   */
  #sweep(nowMs: number): void {
    let calls = 0;
    for (const leased of this.#table.part(this.#sweepPart, sweepParts)) {
      const { lease } = leased;
      addTo(this.#sweeping, lease, nowMs);
      if (calls >= callsTogether || !lease.isCool(this.#coolFor(leased), nowMs)) continue;
      calls += 1;
      if (!lease.isStale(nowMs)) this.#holder.leave(leased, nowMs);
      else if (lease.isDue(nowMs)) this.fetch(leased, nowMs);
    }
    this.#sweepPart = (this.#sweepPart + 1) % sweepParts;
    if (this.#sweepPart !== 0) return;
    this.#lastSwept = this.#sweeping;
    this.#sweeping = { tokens: 0, stale: 0 };
  }

  /** A lease that was begun because its server is short of time is not ended while that lasts. */
  #coolFor(leased: LeasedCounter): number {
    const hot = this.#strained?.findHotPerSecond(leased);
    return hot === undefined ? this.#coolPerSecond : Math.min(this.#coolPerSecond, hot * coolShare);
  }

  /** Gives everything back, as far as the central store answers in time, and leases nothing more. */
  drain(withinMs: number): Promise<void> {
    this.#leasing = false;
    this.#cancelFetches?.();
    this.#cancelFetches = undefined;
    this.#draining ??= this.#holder.drain(this.#table.part(0, 1), callsTogether, withinMs);
    return this.#draining;
  }
}

function addTo(inHand: InHand, lease: Lease, nowMs: number): void {
  inHand.tokens += lease.spendable(nowMs);
  if (lease.isStale(nowMs)) inHand.stale += 1;
}

/** Units in hand, and expired leases that are still spent because the central store does not answer. */
interface InHand {
  tokens: number;
  stale: number;
}

/** All but the first three only grow. */
export interface HeldLeasesStats extends Readonly<InHand> {
  /** Counters that are leased. With more than a thousand, `tokens` and `stale` are at most two seconds old. */
  readonly leases: number;
  /** Finished calls for leases: all of them, those granted nothing, and those without an answer. */
  readonly fetches: number;
  readonly refused: number;
  readonly failed: number;
  /** Units: granted, given back, and ended unspent. */
  readonly granted: number;
  readonly returned: number;
  readonly lost: number;
}
