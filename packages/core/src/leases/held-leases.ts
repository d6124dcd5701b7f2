import type { CallLater, Clock } from "../clock.ts";
import { isLeasable, leaseAllowance, leastAllowance } from "../counters/allowance.ts";
import type { CentralCounters, LeaseAnswer, LeaseAsk, LimitOutcome, ResolvedLimit } from "../counters/counter-store.ts";
import { createOneOutcome, type OneOutcome } from "../counters/single-takes.ts";
import { StoreUnavailable } from "../counters/store-unavailable.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import { outcomeFrom } from "./central-take.ts";
import { Heat } from "./heat.ts";
import { Lease, type LeaseTimes } from "./lease.ts";
import { LeaseTable } from "./lease-table.ts";
import { isAlike, LeasedCounter } from "./leased-counter.ts";

export interface HeldLeasesOptions {
  readonly leasing: boolean;
  readonly times: LeaseTimes;
  readonly hotPerSecond: number;
  readonly coolPerSecond: number | undefined;
  readonly maxLeases: number;
  readonly clock: Clock;
  readonly callLater: CallLater;
}

/** Every lease is looked at once a second, a tenth of them at a time. */
const sweepEveryMs = 100;
const sweepParts = 10;
/** Where what is in hand lasts for the one, the next is fetched within the other, so that it travels together with others. */
const unhurriedMs = 100;
const gatherMs = 10;
/**
 * What pays for the call of a lease: some seven decisions where many checks travel to the centre together, four where 16 do, and fewer than
 * one where each travels alone. Who is asked about less often in the time of a lease is not leased.
 */
const payingDecisions = 7;
/** Where less than this share of what is hot is asked for a counter is let go of. Not at once below hot, or it would go to and fro. */
const coolShare = 0.25;
/** So many are looked at when somebody asks. */
const fewLeases = 1000;
/** So many leases are given back at once. */
const callsTogether = 500;

/** The leases of this node, and the calls to the centre for them: begun when counters are hot, renewed, and given back. */
export class HeldLeases {
  readonly #centre: CentralCounters;
  readonly #options: HeldLeasesOptions;
  readonly #table: LeaseTable<LeasedCounter>;
  readonly #heat: Heat;
  readonly #hotPerSecond: number;
  readonly #coolPerSecond: number;
  readonly #counts = { fetches: 0, refused: 0, failed: 0, granted: 0, returned: 0, lost: 0 };
  #leasing: boolean;
  #aheadMs = 0;
  #one: OneOutcome | undefined;
  #cancelSweep: (() => void) | undefined;
  #sweepPart = 0;
  /** What this round of the sweep has seen so far, and what the last one has. */
  #sweeping: InHand = { tokens: 0, stale: 0 };
  #swept: InHand | undefined;
  #gathered: LeasedCounter[] = [];
  #cancelFetches: (() => void) | undefined;
  #draining: Promise<void> | undefined;

  constructor(centre: CentralCounters, options: HeldLeasesOptions) {
    this.#centre = centre;
    this.#options = options;
    this.#leasing = options.leasing;
    this.#table = new LeaseTable(options.maxLeases);
    const { hotPerSecond, times, clock } = options;
    this.#hotPerSecond = Math.max(hotPerSecond, (payingDecisions / times.leaseMs) * 1000);
    this.#coolPerSecond = options.coolPerSecond ?? this.#hotPerSecond * coolShare;
    this.#heat = new Heat(this.#hotPerSecond, clock.nowMs());
  }

  /** False from the moment that everything is given back. */
  get leasing(): boolean {
    return this.#leasing;
  }

  /** How far the centre's clock, in epoch milliseconds, is ahead of this node's. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  get stats(): HeldLeasesStats {
    return { leases: this.#table.size, ...this.#inHand(), ...this.#counts };
  }

  /** Looking at every lease takes a few milliseconds for each ten thousand: of many it is told what the last sweep saw, two seconds ago at most. */
  #inHand(): InHand {
    if (this.#table.size > fewLeases && this.#swept !== undefined) return this.#swept;
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

  /** How a counter stands as far as this node knows: as the centre said last, by now, and what is in hand on top. */
  describe(leased: LeasedCounter, cost: number, nowMs: number): LimitOutcome {
    const outcome = outcomeFrom(this.describeOne(leased, cost, nowMs));
    const remaining = leased.leastLeft(outcome.remaining);
    return remaining === outcome.remaining ? outcome : { ...outcome, remaining };
  }

  /** The same for a counter of one window; good until the next call. */
  describeOne(leased: LeasedCounter, cost: number, nowMs: number): Readonly<OneOutcome> {
    this.#one ??= createOneOutcome(leased.window);
    leased.describe(cost, nowMs, this.#one);
    this.#one.atMs = nowMs + this.#aheadMs;
    return this.#one;
  }

  /** Begins a lease where it is worth its calls, or a policy asks for it. */
  leaseIfHot(asked: ResolvedLimit, lo: number, hi: number, nowMs: number): void {
    if (!this.#leasing || this.#table.isFull || !isLeasable(asked)) return;
    const { policy } = asked.limit;
    const perSecond = this.#heat.note(lo, hi, nowMs);
    if (perSecond < this.#hotNow() && policy.counters !== "leased") return;
    const allowance = leaseAllowance(asked);
    if (allowance < leastAllowance(policy.counters)) return;
    const leased = new LeasedCounter(asked, lo, hi, new Lease(this.#options.times, allowance, perSecond, nowMs), nowMs);
    this.#table.add(leased);
    this.#sweepLater();
    this.fetch(leased, nowMs);
  }

  /** The fewer places are left, the hotter a newcomer has to be: for whom much is asked there is one, however many lukewarm ones came before. */
  #hotNow(): number {
    return this.#hotPerSecond / (1 - (this.#table.size / this.#options.maxLeases) ** 8);
  }

  /**
   * Whether a lease that was granted by other windows is spent by these: where policies were only written again. What one unit is worth
   * to the counters depends on the numbers, so by others it is neither spent nor given back. After an edit it is given back at once, and
   * where it is another tier's, or another subject's own, it stays with those until it cools.
   */
  adopts(leased: LeasedCounter, limit: CompiledLimit, windows: readonly CompiledWindow[], nowMs: number): boolean {
    if (!isAlike(leased, { limit, windows })) {
      if (leased.limit !== limit) void this.#giveBack(leased, nowMs);
      return false;
    }
    leased.window = windows[leased.windows.indexOf(leased.window)] ?? windows[0]!;
    leased.limit = limit;
    leased.windows = windows;
    return true;
  }

  /** Asks for more where that is due: at once, or, where it can wait, in a moment and together with others. */
  fetch(leased: LeasedCounter, nowMs: number): void {
    if (!this.#leasing || leased.gone) return;
    if (leased.lease.canWait(unhurriedMs, nowMs)) this.#gather(leased);
    else void this.#call(leased, leased.lease.ask(nowMs), nowMs);
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
      // It may have had to hurry meanwhile.
      if (!leased.gone && leased.lease.isDue(nowMs)) void this.#call(leased, leased.lease.ask(nowMs), nowMs);
    }
  }

  /** Ends a lease. What is on its way is waited for, and given back when it arrives. */
  #giveBack(leased: LeasedCounter, nowMs: number): Promise<void> | undefined {
    leased.gone = true;
    this.#table.delete(leased);
    return leased.lease.asking ? leased.calling : this.returnHeld(leased, nowMs);
  }

  /** What is in hand of a lease that has ended. */
  returnHeld(leased: LeasedCounter, nowMs: number): Promise<void> | undefined {
    const { lease } = leased;
    const ask = lease.giveBack(nowMs);
    if (ask !== undefined) return this.#call(leased, ask, nowMs);
    // Strays are spoken of to nobody.
    lease.abandon();
    this.#countLost(leased);
    return undefined;
  }

  #call(leased: LeasedCounter, ask: LeaseAsk, askedMs: number): Promise<void> {
    const calling = this.#ask(leased, ask, askedMs).finally(() => {
      this.#countLost(leased);
      if (leased.calling === calling) leased.calling = undefined;
    });
    leased.calling = calling;
    return calling;
  }

  async #ask(leased: LeasedCounter, ask: LeaseAsk, askedMs: number): Promise<void> {
    const { lease, limit, windows, subject } = leased;
    let answer: LeaseAnswer;
    try {
      answer = await this.#centre.lease([{ limit, windows, subject, cost: 1, group: 0 }], ask);
    } catch (error) {
      // Why the centre does not answer is told where it is asked for decisions; here it matters whether it heard of this call.
      if (error instanceof StoreUnavailable && !error.mayBeDone) lease.callOff(this.#options.clock.nowMs());
      else lease.failed(this.#options.clock.nowMs());
      if (leased.gone) lease.abandon();
      if (ask.want === 0) return;
      this.#counts.fetches += 1;
      this.#counts.failed += 1;
      return;
    }
    const nowMs = this.#options.clock.nowMs();
    lease.granted(answer, nowMs);
    this.#counts.returned += ask.settled?.returned ?? 0;
    this.#counts.granted += answer.granted;
    if (ask.want > 0) this.#counts.fetches += 1;
    if (ask.want > 0 && answer.granted === 0) this.#counts.refused += 1;
    leased.hear(answer, askedMs);
    this.#aheadMs = answer.atMs - askedMs;
    if (!leased.gone) return;
    // After a give-back there is something in hand only if it was set aside until then.
    if (ask.want > 0 || lease.tokens > 0) await this.returnHeld(leased, nowMs);
  }

  #countLost(leased: LeasedCounter): void {
    const { lost } = leased.lease;
    this.#counts.lost += lost - leased.lostCounted;
    leased.lostCounted = lost;
  }

  #sweepLater(): void {
    this.#cancelSweep ??= this.#options.callLater(() => {
      this.#cancelSweep = undefined;
      this.#sweep(this.#options.clock.nowMs());
      if (this.#table.size > 0) this.#sweepLater();
      else this.#endSweep();
    }, sweepEveryMs);
  }

  /** The next one begins anew. */
  #endSweep(): void {
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
    this.#sweepPart = 0;
    this.#sweeping = { tokens: 0, stale: 0 };
    this.#swept = undefined;
  }

  /** Ends leases that cooled. While the centre does not answer they stay, because they are all that there is, and it is asked. */
  #sweep(nowMs: number): void {
    let calls = 0;
    for (const leased of this.#table.part(this.#sweepPart, sweepParts)) {
      const { lease } = leased;
      addTo(this.#sweeping, lease, nowMs);
      if (calls >= callsTogether || !lease.isCool(this.#coolPerSecond, nowMs)) continue;
      calls += 1;
      if (!lease.isStale(nowMs)) void this.#giveBack(leased, nowMs);
      else if (lease.isDue(nowMs)) this.fetch(leased, nowMs);
    }
    this.#sweepPart = (this.#sweepPart + 1) % sweepParts;
    if (this.#sweepPart !== 0) return;
    this.#swept = this.#sweeping;
    this.#sweeping = { tokens: 0, stale: 0 };
  }

  /** Gives everything back, as far as the centre answers within that time, and leases nothing any more. */
  drain(withinMs: number): Promise<void> {
    this.#draining ??= this.#giveAllBack(withinMs);
    return this.#draining;
  }

  async #giveAllBack(withinMs: number): Promise<void> {
    this.#leasing = false;
    this.#endSweep();
    this.#cancelFetches?.();
    this.#cancelFetches = undefined;
    let timeIsUp = false;
    let cancel: (() => void) | undefined;
    const timer = new Promise<void>((resolve) => {
      cancel = this.#options.callLater(() => {
        timeIsUp = true;
        resolve();
      }, withinMs);
    });
    const all = this.#table.part(0, 1);
    for (let i = 0; i < all.length && !timeIsUp; i += callsTogether) {
      const nowMs = this.#options.clock.nowMs();
      const given = all.slice(i, i + callsTogether).map((leased) => this.#giveBack(leased, nowMs));
      await Promise.race([Promise.all(given), timer]);
    }
    cancel?.();
  }
}

function addTo(inHand: InHand, lease: Lease, nowMs: number): void {
  inHand.tokens += lease.spendable(nowMs);
  if (lease.isStale(nowMs)) inHand.stale += 1;
}

/** Units in hand, and leases that are over and still spent, because the centre does not answer. */
interface InHand {
  tokens: number;
  stale: number;
}

/** Numbers that only grow, but for the first three. */
export interface HeldLeasesStats extends Readonly<InHand> {
  /** Counters that are leased. Of more than a thousand, `tokens` and `stale` are those of two seconds ago at most. */
  readonly leases: number;
  /** Calls for leases that are over: all of them, those that were granted nothing, and those without an answer. */
  readonly fetches: number;
  readonly refused: number;
  readonly failed: number;
  /** Units: granted, given back, and ended unspent. */
  readonly granted: number;
  readonly returned: number;
  readonly lost: number;
}
