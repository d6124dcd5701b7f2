import { maxUnits } from "../counters/allowance.ts";
import type { LeaseAnswer, LeaseAsk, SettledGrant } from "../counters/counter-store.ts";

export interface LeaseTimes {
  /** A lease is sized to last this long. */
  readonly refreshMs: number;
  /** How long after it was asked for a lease is renewed, or given back. */
  readonly leaseMs: number;
  /** How much longer it may be spent while the central store does not answer. */
  readonly staleMs: number;
}

/** Below this share of a lease the next one is fetched; below a share of up to the second if calls take long. */
const lowShare = 1 / 5;
const highShare = 3 / 5;
/**
 * Less than this is not worth a call, which costs the central store as much as some seven takes, and is not asked for.
 * If a grant is less than this and half of the allowance, the next call waits: for a pause, and for that much more
 * demand, twice that the next time, and so on.
 */
const leastUseful = 16;
const firstPauseMs = 20;
const longestPauseMs = 1000;
const paying = 8;
const longestPaying = 64;

/**
 * What one node holds of one counter: units that the central store has charged, to be spent here. It keeps these
 * promises, on which the bound in docs/leases.md rests:
 *
 * - The central store learns at most once what became of a unit. After a call without an answer it is unknown whether
 *   it has, so the units then in hand are *strays*: they are spent until their hold ends, and never mentioned
 *   again.
 * - Nothing is spent after its hold, which is counted from before the central store was asked.
 * - Units reserved for a request that other counters still decide are kept until that is known.
 *
 * It makes no calls and has no clock. Its holder sends what `ask` and `giveBack` return, and reports how that went.
 */
export class Lease {
  // The fields that every decision reads come first and close together, as whole numbers, which are stored in place:
  // among a hundred thousand leases, each further cache line is one more that the processor has to wait for.
  /** In hand, and known to the central store by `#epoch`. */
  #tokens = 0;
  #holdEndsMs = 0;
  #strays = 0;
  /** Spent since the last report to the central store. */
  #spent = 0;
  /** Demand here, spent or not, since the rate was last computed, and when that was. */
  #demand = 0;
  #demandMs: number;
  #asking = false;
  /** A cost was asked for since the last grant that was not in hand. */
  #lacked = false;
  #notBeforeMs = 0;
  /** Nor before this much demand. */
  #notBeforeDemand = 0;
  /** When this little is in hand, it is time for the next call. */
  #low = 0;
  #leaseEndsMs: number;
  readonly #times: LeaseTimes;
  /** The most that is worth asking for. */
  readonly #mostUseful: number;
  #reserved = 0;
  #straysEndMs = 0;
  /** Counts the calls without an answer: units reserved before one are not known after it. */
  #era = 0;
  #askedMs = 0;
  /** What the call in flight asks for and reports. */
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

  /** How much of it may be spent now. */
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

  /** Units that have expired unspent so far. */
  get lost(): number {
    return this.#lost;
  }

  /** Expired, but still spent, because the last call was not answered. */
  isStale(nowMs: number): boolean {
    return this.#unanswered && nowMs >= this.#leaseEndsMs && this.spendable(nowMs) > 0;
  }

  /** Whether the cost is in hand. */
  holds(cost: number, nowMs: number): boolean {
    if (this.#strays >= cost && nowMs < this.#straysEndMs) return true;
    return this.#tokens >= cost && nowMs < this.#holdEndsMs;
  }

  /** Spends the cost if it is in hand, and returns whether it was. */
  spend(cost: number, nowMs: number): boolean {
    this.#demand += cost;
    this.#demandMs = Math.floor(nowMs);
    if (this.#strays > 0 && this.#spendStrays(cost, nowMs)) return true;
    if (this.#tokens < cost || nowMs >= this.#holdEndsMs) return this.#hasTooLittle(cost);
    this.#tokens -= cost;
    this.#spent += cost;
    return true;
  }

  /**
   * Sets a cost aside until it is known whether it is spent. Returns a value for `settle`, or −1 if the cost was not in
   * hand.
   */
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

  /** Spends what was set aside or puts it back in hand; units no longer known to the central store are lost. */
  settle(era: number, cost: number, isSpent: boolean): void {
    if (era !== this.#era) {
      if (!isSpent) this.#lost += cost;
      return;
    }
    this.#reserved -= cost;
    if (isSpent) this.#spent += cost;
    else this.#tokens += cost;
  }

  /**
   * Whether it is time to ask for more: little is left, or the lease has ended. One call at a time, and after a poor
   * grant a while later.
   */
  isDue(nowMs: number): boolean {
    if (this.#asking || nowMs < this.#notBeforeMs) return false;
    const inHand = this.#tokens + this.#strays;
    if (inHand === 0 && this.#demand < this.#notBeforeDemand) return false;
    return inHand <= this.#low || nowMs >= this.#leaseEndsMs;
  }

  /**
   * Whether the next call can wait: no request lacked units, and those in hand last for `forMs` at the last known rate,
   * and have not halved since the call was due.
   */
  canWait(forMs: number, nowMs: number): boolean {
    return !this.#lacked && this.spendable(nowMs) > Math.max(this.#perMs * forMs, this.#low / 2);
  }

  /** Whether its time is over and demand since the grant was below this rate, or there was none for as long again. */
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

  /** Begins a call that gives back what is in hand. Undefined if there is nothing to report. */
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
    // What is spent during two calls should still be in hand when the next one begins.
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

  /**
   * The central store does not know this many of the kept units. Those spent meanwhile are not mentioned: they would
   * count as others'.
   */
  #forget(units: number): void {
    const dropped = Math.min(this.#tokens, units);
    this.#tokens -= dropped;
    this.#lost += dropped;
    this.#spent = Math.max(this.#spent - (units - dropped), 0);
  }

  /** The call was certainly not carried out: its report is still to be made. */
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
    // It may have been returned; that can never be known.
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

  /** The units still in hand will not be spent. */
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

  /** The central store forgets units past their hold, so they are not mentioned again. */
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

  /** Less than one request takes is next to nothing, however large a part of the lease it is. */
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

  /** Grows by the demand, and by at least one, when used up; otherwise shrinks by half of the excess. */
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

/** The central store's answer; nothing is forgotten unless it says so. */
type Granted = Pick<LeaseAnswer, "granted" | "epoch"> & Partial<Pick<LeaseAnswer, "forgotten">>;

/** Reserved strays belong to no era. */
const straysEra = -2;
