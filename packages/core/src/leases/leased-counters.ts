import { type Clock, callLater, systemClock } from "../clock.ts";
import { isLeasable } from "../counters/allowance.ts";
import type {
  CentralCounters,
  HoldStore,
  LeaseAnswer,
  LeaseAsk,
  PeekOptions,
  Receipt,
  ResolvedLimit,
  TakeAnswer,
  TakeOptions,
  WindowReading,
} from "../counters/counter-store.ts";
import { ExpiringMap } from "../counters/expiring-map.ts";
import { type Hash64, hashText } from "../counters/hash.ts";
import { idempotencyConflict } from "../counters/idempotency-conflict.ts";
import { type OneOutcome, type SingleTakes, singleTakesFrom, type TakeCallback } from "../counters/single-takes.ts";
import { HotKeys } from "../hot-keys/hot-keys.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import { defaultIdTtlMs } from "../policy/bounds.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { CentralDenials, CentralTake } from "./central-take.ts";
import { HeldLeases, type HeldLeasesStats } from "./held-leases.ts";
import { isAlike, type LeasedCounter } from "./leased-counter.ts";
import { type LeasedCountersOptions, parseLeasingOptions } from "./leased-counters-options.ts";
import { LocalDenials } from "./local-denials.ts";
import { Reservation } from "./reservation.ts";

export interface LeasedCountersStats extends HeldLeasesStats {
  /** Decisions by units in hand, by repeated denials, and by the central store. */
  readonly local: number;
  readonly denials: number;
  readonly central: number;
  /** Units that were spent here. */
  readonly spent: number;
}

const drainWithinMs = 2000;

/**
 * An id whose request was decided here or, if there is no answer, by the central store, which remembers it. What it is
 * bound to is hashed.
 */
interface KnownId {
  readonly fingerprintLo: number;
  readonly fingerprintHi: number;
  readonly answer: TakeAnswer | undefined;
}

/**
 * Counters on top of others, the *central store* or `centre`. Hot counters are leased: units are taken from the central store at
 * once, and spent here without asking. What it denied is denied here until it may be retried. It decides everything
 * else. By how much a limit may be exceeded is its policy's `max_overshoot`, whatever the number of nodes; see
 * docs/leases.md.
 *
 * Nothing runs before the first lease, and two timers at most while there are any.
 */
export class LeasedCounters implements CentralCounters, SingleTakes {
  readonly local = false;
  readonly hotKeys: HotKeys;
  readonly #centre: CentralCounters;
  readonly #centralTakes: SingleTakes;
  readonly #clock: Clock;
  readonly #held: HeldLeases;
  readonly #denials: LocalDenials;
  readonly #centralDenials: CentralDenials;
  readonly #ids: ExpiringMap<KnownId>;
  readonly #hash: Hash64 = { lo: 0, hi: 0 };
  readonly #counts = { local: 0, denials: 0, central: 0, spent: 0 };

  constructor(centre: CentralCounters, options: LeasedCountersOptions = {}) {
    const leasing = parseLeasingOptions(options);
    const clock = options.clock ?? systemClock;
    this.#centre = centre;
    this.#centralTakes = singleTakesFrom(centre);
    this.#clock = clock;
    this.#held = new HeldLeases(centre, { ...leasing, clock, callLater: options.callLater ?? callLater });
    this.#denials = new LocalDenials(leasing.leasing ? (options.maxDenialMs ?? 1000) : 0);
    this.#ids = new ExpiringMap(options.maxIds ?? 100_000);
    this.hotKeys = options.hotKeys ?? new HotKeys({ clock });
    this.#centralDenials = new CentralDenials(this.hotKeys, this.#denials);
  }

  get reportsOutages(): boolean {
    return this.#centre.reportsOutages === true;
  }

  get distinct(): boolean {
    return this.#centre.distinct === true;
  }

  get leases(): boolean {
    return this.#held.leasing;
  }

  /** Those of the central store. What it denied may be denied here for a moment longer, although a hold gave it back. */
  get holds(): HoldStore | undefined {
    return this.#centre.holds;
  }

  get stats(): LeasedCountersStats {
    return { ...this.#held.stats, ...this.#counts };
  }

  takeOne<T>(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
    request: CheckRequest,
    callback: TakeCallback<T>,
  ): Readonly<OneOutcome> | Promise<T> {
    this.#hashCounter(limit, subject);
    const { lo, hi } = this.#hash;
    const nowMs = this.#clock.nowMs();
    this.hotKeys.note(limit, subject, lo, hi, nowMs);
    const leased = this.#held.find(lo, hi);
    if (leased !== undefined && (leased.windows === windows || this.#held.adopts(leased, limit, windows, nowMs))) {
      const isSpent = leased.lease.spend(cost, nowMs);
      if (leased.lease.isDue(nowMs)) this.#held.fetch(leased, nowMs);
      if (isSpent) {
        this.#counts.local += 1;
        this.#counts.spent += cost;
        return this.#held.describeOne(leased, cost, nowMs);
      }
    }
    if (!this.#denials.isEmpty(nowMs)) {
      const denial = this.#denials.find(lo, hi, windows, cost, nowMs);
      if (denial !== undefined) {
        this.#counts.denials += 1;
        this.hotKeys.noteDenied(lo, hi);
        return { ...denial.outcome, atMs: denial.atMs, order: 0 };
      }
    }
    const asked = new CentralTake(limit, windows, subject, cost, lo, hi, nowMs, this.#centralDenials, callback);
    if (leased === undefined || leased.gone) this.#held.leaseIfHot(asked, lo, hi, nowMs);
    this.#counts.central += 1;
    const answer = this.#centralTakes.takeOne(limit, windows, subject, cost, request, asked);
    if (!(answer instanceof Promise)) asked.noteDenial(answer);
    return answer;
  }

  take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer | Promise<TakeAnswer> {
    if (limits.length === 0) return this.#centre.take(limits, options);
    if (options?.id !== undefined) return this.#takeWithId(limits, options, options.id);
    if (options?.receipt === true || isAnyRecorded(limits, options)) return this.#takeAtCentre(limits, options, true);
    const nowMs = this.#clock.nowMs();
    const reservation = this.#reserve(limits, nowMs, options?.details === true);
    const { isWhole, denied, rest } = reservation;
    if (isWhole || denied !== undefined) this.#settle(reservation, () => isWhole);
    reservation.fetchDue(nowMs);
    if (denied !== undefined) {
      this.#counts.denials += 1;
      return reservation.deniedAnswer(denied, nowMs);
    }
    if (isWhole) {
      this.#counts.local += 1;
      return reservation.spentAnswer(nowMs);
    }
    this.#counts.central += 1;
    let answer: TakeAnswer | Promise<TakeAnswer>;
    try {
      const asked = rest.length === limits.length ? limits : rest.map((index) => limits[index]!);
      answer = this.#centre.take(asked, options);
    } catch (error) {
      this.#settle(reservation, () => false);
      throw error;
    }
    const combine = (central: TakeAnswer): TakeAnswer => this.#combine(limits, reservation, central, nowMs);
    if (!(answer instanceof Promise)) return combine(answer);
    return answer.then(combine, (error: unknown) => {
      this.#settle(reservation, () => false);
      throw error;
    });
  }

  peek(limits: readonly ResolvedLimit[], options?: PeekOptions): TakeAnswer | Promise<TakeAnswer> {
    if (isAnyRecorded(limits, options)) return this.#centre.peek(limits, options);
    const nowMs = this.#clock.nowMs();
    const held = limits.map((limit) => this.#findHeld(limit, nowMs));
    const rest = limits.filter((_, i) => held[i] === undefined);
    if (rest.length === limits.length) return this.#centre.peek(limits, options);
    const combine = ({ atMs, outcomes }: Pick<TakeAnswer, "atMs" | "outcomes">): TakeAnswer => {
      const asked = outcomes.values();
      const all = limits.map(({ cost }, i) =>
        held[i] === undefined ? asked.next().value! : this.#held.describe(held[i], cost, nowMs),
      );
      return { taken: false, atMs, outcomes: all, receipt: undefined, replayed: false };
    };
    if (rest.length === 0) return combine({ atMs: nowMs + this.#held.aheadMs, outcomes: [] });
    const central = this.#centre.peek(rest, options);
    return central instanceof Promise ? central.then(combine) : combine(central);
  }

  give(receipt: Receipt): boolean | Promise<boolean> {
    return this.#centre.give(receipt);
  }

  charge(limits: readonly ResolvedLimit[]): void | Promise<void> {
    return this.#thenForget(limits, this.#centre.charge(limits));
  }

  block(limits: readonly ResolvedLimit[], forMs: number): void | Promise<void> {
    return this.#thenForget(limits, this.#centre.block(limits, forMs));
  }

  /** Other nodes repeat their denials for a second at most, and spend their leases as before. */
  reset(limits: readonly ResolvedLimit[]): void | Promise<void> {
    return this.#thenForget(limits, this.#centre.reset(limits));
  }

  forget(limits: readonly ResolvedLimit[]): void {
    this.#centre.forget?.(limits);
    this.#forgetDenials(limits);
  }

  read(limit: ResolvedLimit): readonly WindowReading[] | Promise<readonly WindowReading[]> {
    const tokens = this.#findLeased(limit)?.lease.tokens ?? 0;
    const withTokens = (readings: readonly WindowReading[]): readonly WindowReading[] =>
      readings.map((reading) => ({ ...reading, state: { ...reading.state, leasedHere: tokens } }));
    const readings = this.#centre.read(limit);
    if (tokens === 0) return readings;
    return readings instanceof Promise ? readings.then(withTokens) : withTokens(readings);
  }

  /** Another holder's lease: passed on to the central store. */
  lease(limits: readonly ResolvedLimit[], ask: LeaseAsk): LeaseAnswer | Promise<LeaseAnswer> {
    return this.#centre.lease(limits, ask);
  }

  /** Gives everything back, as far as the central store answers in time, and leases nothing more. */
  drain(withinMs: number = drainWithinMs): Promise<void> {
    return this.#held.drain(withinMs);
  }

  async close(): Promise<void> {
    await this.drain();
    await this.#centre.close();
  }

  /** Sets aside what is in hand. Stops at the first limit that is denied here, unless every outcome is wanted. */
  #reserve(limits: readonly ResolvedLimit[], nowMs: number, details: boolean): Reservation {
    const reservation = new Reservation(limits, this.#held);
    for (let index = 0; index < limits.length; index++) {
      const asked = limits[index]!;
      const { limit, windows, subject, cost, group } = asked;
      this.#hashCounter(limit, subject);
      const { lo, hi } = this.#hash;
      this.hotKeys.note(limit, subject, lo, hi, nowMs);
      const leased = this.#held.find(lo, hi);
      if (
        leased !== undefined &&
        (leased.windows === windows || this.#held.adopts(leased, limit, windows, nowMs)) &&
        reservation.reserve(index, leased, nowMs)
      )
        continue;
      reservation.rest.push(index);
      if (group === 0 && !details && !this.#denials.isEmpty(nowMs)) {
        const denial = this.#denials.find(lo, hi, windows, cost, nowMs);
        if (denial !== undefined) {
          this.hotKeys.noteDenied(lo, hi);
          reservation.denied = { index, ...denial };
          break;
        }
      }
      if (leased === undefined || leased.gone) this.#held.leaseIfHot(asked, lo, hi, nowMs);
    }
    return reservation;
  }

  #settle(reservation: Reservation, isSpent: (limit: ResolvedLimit) => boolean): void {
    this.#counts.spent += reservation.settle(isSpent, this.#clock);
  }

  /** An id is remembered where its request is decided: here, only if the central store decides no part of it. */
  #takeWithId(limits: readonly ResolvedLimit[], options: TakeOptions, id: string): TakeAnswer | Promise<TakeAnswer> {
    const nowMs = this.#clock.nowMs();
    hashText(options.fingerprint ?? "", this.#hash);
    const { lo: fingerprintLo, hi: fingerprintHi } = this.#hash;
    const known = this.#ids.find(id, nowMs);
    if (known?.answer !== undefined) {
      if (known.fingerprintLo !== fingerprintLo || known.fingerprintHi !== fingerprintHi) throw idempotencyConflict(id);
      return { ...known.answer, replayed: true };
    }
    const staysCentral = options.receipt === true || isAnyRecorded(limits, options);
    if (known === undefined) {
      const answer = staysCentral ? undefined : this.#takeHere(limits, nowMs);
      // A question that the central store was asked is asked again there, whatever is in hand by then: it knows whether
      // it charged.
      if (answer !== undefined || limits.every(isLeasable)) {
        const untilMs = nowMs + (options.idTtlMs ?? defaultIdTtlMs);
        this.#ids.set(id, { fingerprintLo, fingerprintHi, answer }, untilMs, nowMs);
      }
      if (answer !== undefined) return answer;
    }
    return this.#takeAtCentre(limits, options, staysCentral);
  }

  /** Undefined if not all of it is in hand: nothing is spent then. */
  #takeHere(limits: readonly ResolvedLimit[], nowMs: number): TakeAnswer | undefined {
    const reservation = this.#reserve(limits, nowMs, true);
    const { isWhole } = reservation;
    this.#settle(reservation, () => isWhole);
    reservation.fetchDue(nowMs);
    if (!isWhole) return undefined;
    this.#counts.local += 1;
    return reservation.spentAnswer(nowMs);
  }

  /**
   * Takes all of it there, whatever is in hand. Denials are not repeated from here: the request may be a repetition of
   * one that was taken. `isNew`: hot keys have not counted it yet.
   */
  #takeAtCentre(
    limits: readonly ResolvedLimit[],
    options: TakeOptions | undefined,
    isNew: boolean,
  ): TakeAnswer | Promise<TakeAnswer> {
    this.#counts.central += 1;
    const nowMs = this.#clock.nowMs();
    const note = (answer: TakeAnswer): TakeAnswer => {
      for (const [i, { limit, subject }] of limits.entries()) {
        this.#hashCounter(limit, subject);
        const { lo, hi } = this.#hash;
        if (isNew) this.hotKeys.note(limit, subject, lo, hi, nowMs);
        if (answer.outcomes[i]!.fits !== "now") this.hotKeys.noteDenied(lo, hi);
      }
      return answer;
    };
    const answer = this.#centre.take(limits, options);
    return answer instanceof Promise ? answer.then(note) : note(answer);
  }

  /** Combines the central store's answer with what was set aside here. */
  #combine(limits: readonly ResolvedLimit[], reservation: Reservation, central: TakeAnswer, nowMs: number): TakeAnswer {
    const { rest } = reservation;
    const refused = new Set<number>();
    for (let i = 0; i < rest.length; i++) {
      const asked = limits[rest[i]!]!;
      const outcome = central.outcomes[i]!;
      if (outcome.fits === "now") continue;
      refused.add(asked.group);
      if (central.taken) continue;
      this.#hashCounter(asked.limit, asked.subject);
      this.#centralDenials.note(this.#hash.lo, this.#hash.hi, asked, outcome, nowMs, central.atMs);
    }
    this.#settle(reservation, ({ group }) => central.taken && !refused.has(group));
    return reservation.combinedAnswer(central, nowMs);
  }

  /** Forgets remembered denials, which may no longer hold. */
  #thenForget(limits: readonly ResolvedLimit[], done: void | Promise<void>): void | Promise<void> {
    if (done instanceof Promise) return done.then(() => this.#forgetDenials(limits));
    this.#forgetDenials(limits);
  }

  #forgetDenials(limits: readonly ResolvedLimit[]): void {
    for (const { limit, subject } of limits) {
      this.#hashCounter(limit, subject);
      this.#denials.forget(this.#hash.lo, this.#hash.hi);
    }
  }

  /** The hash of one limit's counter for one subject, into `#hash`. */
  #hashCounter(limit: CompiledLimit, subject: string): void {
    hashText(subject, this.#hash);
    this.#hash.lo ^= limit.hashLo;
    this.#hash.hi ^= limit.hashHi;
  }

  #findLeased({ limit, subject }: ResolvedLimit): LeasedCounter | undefined {
    this.#hashCounter(limit, subject);
    return this.#held.find(this.#hash.lo, this.#hash.hi);
  }

  /** The leased counter that a cost would be spent from. */
  #findHeld(asked: ResolvedLimit, nowMs: number): LeasedCounter | undefined {
    const leased = this.#findLeased(asked);
    if (leased === undefined || (leased.windows !== asked.windows && !isAlike(leased, asked))) return undefined;
    return leased.lease.holds(asked.cost, nowMs) ? leased : undefined;
  }
}

/** Records are kept in the central store, so recorded limits are decided there. */
function isAnyRecorded(limits: readonly ResolvedLimit[], options: PeekOptions | undefined): boolean {
  return options?.record === true || limits.some(({ limit }) => limit.policy.countDenials);
}
