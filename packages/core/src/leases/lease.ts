import { maxUnits } from "../counters/allowance.ts";
import type { LeaseAnswer, LeaseAsk, SettledGrant } from "../counters/counter-store.ts";

export interface LeaseTimes {
  /** A lease is sized to last this long. */
  readonly refreshMs: number;
  /** How long after it was asked for a lease is renewed, or given back. */
  readonly leaseMs: number;
  /** How much longer it may be spent while the centre does not answer. */
  readonly staleMs: number;
}

/** Below this share of a lease the next one is fetched; at a share of up to the other where calls take long. */
const lowShare = 1 / 5;
const highShare = 3 / 5;
/**
 * Less than this is not worth a call, which costs the centre as much as some seven takes: it is not asked for. Where less is granted than this
 * and half of the allowance, the next call is made a while later: after a pause, and after so much more was asked for, twice that the
 * next time, and so on.
 */
const leastUseful = 16;
const firstPauseMs = 20;
const longestPauseMs = 1000;
const paying = 8;
const longestPaying = 64;

/**
 * What one node holds of one counter: units that the centre has charged, to be spent here. It keeps these promises, on which the
 * bound in docs/leases.md stands:
 *
 * - Of every unit the centre is told at most once what became of it. After a call without an answer nobody knows whether it was
 *   told, so what is in hand by then are *strays*: they are spent until their hold ends, and never spoken of again.
 * - Nothing is spent after its hold, which is counted from before the centre was asked.
 * - What is reserved for a request that other counters still decide about is held until that is known.
 *
 * It asks nobody and knows no clock. Who holds it sends what `ask` and `giveBack` say, and tells how that went.
 */
export class Lease {
  // What every decision looks at stands first and close together, in whole numbers, which need no place of their own: among a hundred thousand
  // leases each further place is one more that the processor has to wait for.
  /** In hand, and known to the centre by `#epoch`. */
  #tokens = 0;
  #holdEndsMs = 0;
  #strays = 0;
  /** Spent since the centre was told last. */
  #spent = 0;
  /** What was asked for here, spent or not, since the rate was looked at last, and when that was. */
  #demand = 0;
  #demandMs: number;
  #asking = false;
  /** Something was asked for since the last grant that was not in hand. */
  #lacked = false;
  #notBeforeMs = 0;
  /** Nor before so much was asked for. */
  #notBeforeDemand = 0;
  /** So little in hand makes it time for the next call. */
  #low = 0;
  #leaseEndsMs: number;
  readonly #times: LeaseTimes;
  /** The most that there is any use in wanting. */
  readonly #mostUseful: number;
  #reserved = 0;
  #straysEndMs = 0;
  /** Counts the calls without an answer: what was reserved before one is not what is known after it. */
  #era = 0;
  #askedMs = 0;
  /** What the call that is on its way asks for and tells. */
  #asked = 0;
  #toldSpent = 0;
  #toldReturned = 0;
  #pauseMs = firstPauseMs;
  /** In hand after the last grant. */
  #size = 0;
  #want: number;
  #lost = 0;
  #unanswered = false;
  #epoch = 0;
  /** How long calls take, smoothed. */
  #tripMs = 0;
  #demandSinceMs: number;
  #perMs: number;

  constructor(times: LeaseTimes, mostUseful: number, perSecond: number, nowMs: number) {
    this.#times = times;
    this.#mostUseful = mostUseful;
    this.#perMs = perSecond / 1000;
    this.#want = this.#sizeFor(this.#perMs);
    this.#demandSinceMs = nowMs;
    this.#demandMs = Math.floor(nowMs);
    this.#leaseEndsMs = Math.floor(nowMs);
  }

  /** In hand and free to be spent. */
  get tokens(): number {
    return this.#tokens + this.#strays;
  }

  /** What of it may be spent now. */
  spendable(nowMs: number): number {
    return (nowMs < this.#holdEndsMs ? this.#tokens : 0) + (nowMs < this.#straysEndMs ? this.#strays : 0);
  }

  get asking(): boolean {
    return this.#asking;
  }

  /** How many units were in hand after the last grant, and how many are wanted next. */
  get size(): number {
    return this.#size;
  }

  get want(): number {
    return this.#want;
  }

  /** Units that ended unspent, so far. */
  get lost(): number {
    return this.#lost;
  }

  /** Over, and still to be spent, because the last call was not answered. */
  isStale(nowMs: number): boolean {
    return this.#unanswered && nowMs >= this.#leaseEndsMs && this.spendable(nowMs) > 0;
  }

  /** Whether the cost is in hand. */
  holds(cost: number, nowMs: number): boolean {
    if (this.#strays >= cost && nowMs < this.#straysEndMs) return true;
    return this.#tokens >= cost && nowMs < this.#holdEndsMs;
  }

  /** Whether the cost was in hand, and is spent now. */
  spend(cost: number, nowMs: number): boolean {
    this.#demand += cost;
    this.#demandMs = Math.floor(nowMs);
    if (this.#strays > 0 && this.#spendStrays(cost, nowMs)) return true;
    if (this.#tokens < cost || nowMs >= this.#holdEndsMs) return this.#hasTooLittle(cost);
    this.#tokens -= cost;
    this.#spent += cost;
    return true;
  }

  /** Sets a cost aside until it is known whether it is spent. What is answered is for `settle`; −1: it was not in hand. */
  reserve(cost: number, nowMs: number): number {
    this.#demand += cost;
    this.#demandMs = Math.floor(nowMs);
    if (this.#strays > 0 && this.#spendStrays(cost, nowMs)) return straysEra;
    if (this.#tokens < cost || nowMs >= this.#holdEndsMs) {
      this.#hasTooLittle(cost);
      return -1;
    }
    this.#tokens -= cost;
    this.#reserved += cost;
    return this.#era;
  }

  /** What was set aside is spent, or back in hand; what nobody knows of any more is lost. */
  settle(era: number, cost: number, isSpent: boolean): void {
    if (era !== this.#era) {
      if (!isSpent) this.#lost += cost;
      return;
    }
    this.#reserved -= cost;
    if (isSpent) this.#spent += cost;
    else this.#tokens += cost;
  }

  /** Whether it is time to ask for more: little is left, or the lease has ended. One call at a time, and after a poor grant a while later. */
  isDue(nowMs: number): boolean {
    if (this.#asking || nowMs < this.#notBeforeMs) return false;
    const inHand = this.#tokens + this.#strays;
    if (inHand === 0 && this.#demand < this.#notBeforeDemand) return false;
    return inHand <= this.#low || nowMs >= this.#leaseEndsMs;
  }

  /**
   * Whether the next call can wait: nobody lacked anything, and what may be spent lasts for so long, at the rate that was seen last, and has
   * not halved since the call was due.
   */
  canWait(forMs: number, nowMs: number): boolean {
    return !this.#lacked && this.spendable(nowMs) > Math.max(this.#perMs * forMs, this.#low / 2);
  }

  /** Whether its time is over, and less than this a second was asked for since it was granted, or nothing for as long again. */
  isCool(perSecond: number, nowMs: number): boolean {
    const forMs = nowMs - this.#demandSinceMs;
    if (this.#asking || nowMs < this.#leaseEndsMs || forMs <= 0) return false;
    return nowMs - this.#demandMs >= this.#times.leaseMs || (this.#demand / forMs) * 1000 < perSecond;
  }

  /** Begins a call for more. */
  ask(nowMs: number): LeaseAsk {
    const usedUp = this.#tokens + this.#strays <= this.#low;
    this.#adapt(usedUp, nowMs);
    return this.#begin(nowMs, this.#want, 0);
  }

  /** Begins a call that gives back what is in hand. Undefined where the centre has nothing to be told. */
  giveBack(nowMs: number): LeaseAsk | undefined {
    if (this.#asking) return undefined;
    this.#dropEnded(nowMs);
    if (this.#epoch === 0) return undefined;
    const returned = this.#tokens;
    this.#tokens = 0;
    return this.#begin(nowMs, 0, returned);
  }

  granted({ granted, epoch, forgotten = 0 }: Granted, nowMs: number): void {
    this.#asking = false;
    this.#unanswered = false;
    this.#lacked = false;
    if (forgotten > 0) this.#forget(forgotten);
    this.#tokens += granted;
    this.#epoch = this.#tokens + this.#reserved + this.#spent > 0 ? epoch : 0;
    this.#holdEndsMs = Math.floor(this.#askedMs + this.#times.leaseMs + this.#times.staleMs);
    this.#leaseEndsMs = Math.floor(this.#askedMs + this.#times.leaseMs);
    this.#size = this.#tokens + this.#strays;
    this.#tripMs += (nowMs - this.#askedMs - this.#tripMs) / 4;
    // What is spent during two calls should still be in hand when the next is begun.
    const spentMeanwhile = Math.min(this.#perMs * 2 * this.#tripMs, this.#size * highShare);
    this.#low = Math.floor(Math.max(this.#size * lowShare, spentMeanwhile));
    if (granted === 0) this.#want = Math.max(Math.floor(this.#want / 2), 1);
    if (granted >= Math.min(leastUseful, Math.ceil(this.#mostUseful / 2), this.#asked)) {
      this.#pauseMs = firstPauseMs;
      this.#notBeforeMs = 0;
      this.#notBeforeDemand = 0;
    } else {
      this.#pause(nowMs);
      this.#notBeforeDemand = Math.min(Math.max(2 * this.#notBeforeDemand, paying), longestPaying);
    }
  }

  /** The centre does not know so much of what was kept. What was spent of it meanwhile is not spoken of: it would be others'. */
  #forget(units: number): void {
    const dropped = Math.min(this.#tokens, units);
    this.#tokens -= dropped;
    this.#lost += dropped;
    this.#spent = Math.max(this.#spent - (units - dropped), 0);
  }

  /** The call was surely not carried out: what it told is still to be told. */
  callOff(nowMs: number): void {
    this.#asking = false;
    this.#unanswered = true;
    this.#spent += this.#toldSpent;
    this.#tokens += this.#toldReturned;
    this.#pause(nowMs);
  }

  /** The call was not answered: it may have been carried out or not. */
  failed(nowMs: number): void {
    this.#asking = false;
    this.#unanswered = true;
    // It may be back where it came from; nobody will ever know.
    this.#lost += this.#toldReturned;
    this.#straysEndMs = this.#strays > 0 ? Math.min(this.#straysEndMs, this.#holdEndsMs) : this.#holdEndsMs;
    this.#strays += this.#tokens;
    this.#tokens = 0;
    this.#reserved = 0;
    this.#spent = 0;
    this.#epoch = 0;
    this.#era += 1;
    this.#pause(nowMs);
  }

  /** Nobody will spend what is still in hand. */
  abandon(): void {
    this.#lost += this.#tokens + this.#strays;
    this.#tokens = 0;
    this.#strays = 0;
  }

  #begin(nowMs: number, want: number, returned: number): LeaseAsk {
    this.#dropEnded(nowMs);
    this.#asking = true;
    this.#askedMs = nowMs;
    const settled: SettledGrant | undefined =
      this.#epoch === 0
        ? undefined
        : { epoch: this.#epoch, spent: this.#spent, kept: this.#tokens + this.#reserved, returned };
    this.#asked = want;
    this.#toldSpent = this.#spent;
    this.#toldReturned = returned;
    this.#spent = 0;
    return { want, holdMs: this.#times.leaseMs + this.#times.staleMs, settled };
  }

  /** The centre forgets what is past its hold, so nobody speaks of it any more. */
  #dropEnded(nowMs: number): void {
    if (this.#strays > 0 && nowMs >= this.#straysEndMs) {
      this.#lost += this.#strays;
      this.#strays = 0;
    }
    if (nowMs < this.#holdEndsMs) return;
    this.#lost += this.#tokens;
    this.#tokens = 0;
    this.#spent = 0;
    this.#epoch = 0;
    this.#reserved = 0;
    this.#era += 1;
  }

  /** Less than one request takes is next to nothing, however much of the lease it is. */
  #hasTooLittle(cost: number): false {
    if (cost > this.#mostUseful) return false;
    this.#low = Math.max(this.#low, this.tokens);
    this.#lacked = true;
    return false;
  }

  #spendStrays(cost: number, nowMs: number): boolean {
    if (this.#strays < cost || nowMs >= this.#straysEndMs) return false;
    this.#strays -= cost;
    return true;
  }

  /** Grows by what was asked for, and by at least one, when used up; shrinks by half of what was too much when not. */
  #adapt(usedUp: boolean, nowMs: number): void {
    const forMs = nowMs - this.#demandSinceMs;
    if (forMs >= 1) {
      this.#perMs = this.#demand / forMs;
      this.#demand = 0;
      this.#demandSinceMs = nowMs;
    }
    const fitting = this.#sizeFor(this.#perMs);
    const next = usedUp ? Math.max(fitting, this.#want + 1) : Math.ceil((this.#want + fitting) / 2);
    this.#want = Math.max(Math.min(next, this.#mostUseful), 1);
  }

  #sizeFor(perMs: number): number {
    return Math.min(Math.max(Math.ceil(perMs * this.#times.refreshMs), leastUseful), this.#mostUseful, maxUnits);
  }

  #pause(nowMs: number): void {
    this.#notBeforeMs = Math.ceil(nowMs + this.#pauseMs);
    this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs);
  }
}

/** What the centre answered; nothing is forgotten where it does not say so. */
type Granted = Pick<LeaseAnswer, "granted" | "epoch"> & Partial<Pick<LeaseAnswer, "forgotten">>;

/** Strays that were set aside belong to no era. */
const straysEra = -2;
