import {
  aClock,
  aFunction,
  anObject,
  checkOptions,
  numberFrom,
  type OptionForms,
  trueOrFalse,
} from "../check-options.ts";
import { type CallLater, type Clock, callLater, systemClock } from "../clock.ts";
import { isLeasable } from "../counters/allowance.ts";
import type {
  CentralCounters,
  LeaseAnswer,
  LeaseAsk,
  LimitOutcome,
  OneAsker,
  OneOutcome,
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
import { createOneOutcome } from "../counters/one-outcome.ts";
import { HotKeys } from "../hot-keys/hot-keys.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { checkAtLeastZero, checkLeaseTimes } from "./check-lease-times.ts";
import { HeldLeases, type HeldLeasesStats } from "./held-leases.ts";
import { isAlike, type LeasedCounter } from "./leased-counter.ts";
import { type LocalDenial, LocalDenials } from "./local-denials.ts";

export interface LeasedCountersOptions {
  /** False: everything is decided at the centre, and hot keys are only watched. */
  readonly leasing?: boolean | undefined;
  /** A lease is sized to last so long at the rate it is spent at. Absent: 10 000. */
  readonly refreshMs?: number | undefined;
  /** How long after it was asked for a lease is renewed, or given back. Absent: 20 000. */
  readonly leaseMs?: number | undefined;
  /** How much longer what is in hand may be spent while the centre does not answer. Absent: 60 000. */
  readonly staleMs?: number | undefined;
  /**
   * From so many decisions per second on a counter is leased, but never from fewer than seven in the time of a lease, which would not pay for
   * its call. Absent: 0.35.
   */
  readonly hotPerSecond?: number | undefined;
  /** Down to so few it stays so. Absent: a quarter of that. */
  readonly coolPerSecond?: number | undefined;
  /** How many counters are leased at most, half a kilobyte each; the nearer to that, the hotter they have to be. Absent: 200 000. */
  readonly maxLeases?: number | undefined;
  /** How long a denial of the centre's is repeated here at most. Absent: 1 000; 0: every denial is the centre's own. */
  readonly maxDenialMs?: number | undefined;
  /** How many request ids are remembered at most. Absent: 100 000. */
  readonly maxIds?: number | undefined;
  /** Hears of every decision. Absent: one of its own. */
  readonly hotKeys?: HotKeys | undefined;
  readonly clock?: Clock | undefined;
  /** For tests: how it is called later. */
  readonly callLater?: CallLater | undefined;
}

/** Times and numbers are checked together, below. */
const optionForms: OptionForms<LeasedCountersOptions> = {
  leasing: trueOrFalse,
  refreshMs: undefined,
  leaseMs: undefined,
  staleMs: undefined,
  hotPerSecond: undefined,
  coolPerSecond: numberFrom(0),
  maxLeases: undefined,
  maxDenialMs: numberFrom(0),
  maxIds: numberFrom(0),
  hotKeys: anObject,
  clock: aClock,
  callLater: aFunction,
};

export interface LeasedCountersStats extends HeldLeasesStats {
  /** Decisions by what was in hand, by denials that were repeated, and by the centre. */
  readonly local: number;
  readonly denials: number;
  readonly central: number;
  /** Units that were spent here. */
  readonly spent: number;
}

const defaultIdTtlMs = 10 * 60 * 1000;
const drainWithinMs = 2000;

/** A leased counter that something is set aside of for one request. */
interface Reserved {
  readonly index: number;
  readonly leased: LeasedCounter;
  readonly era: number;
}

/** An id whose request was decided here; or, where there is no answer, at the centre, which remembers it. What it is bound to is hashed. */
interface KnownId {
  readonly fingerprintLo: number;
  readonly fingerprintHi: number;
  readonly answer: TakeAnswer | undefined;
}

/**
 * Counters that stand on others, the *centre*. Counters that are hot are leased: so much is taken from the centre at once, and spent
 * here without asking. What the centre denied is denied here until it may be retried. Everything else is the centre's. By how much
 * a limit may be exceeded is its policy's `max_overshoot`, whatever the number of nodes; see docs/leases.md.
 *
 * Nothing runs before the first lease, and two timers at most while there are any.
 */
export class LeasedCounters implements CentralCounters {
  readonly local = false;
  readonly hotKeys: HotKeys;
  readonly #centre: CentralCounters;
  readonly #clock: Clock;
  readonly #held: HeldLeases;
  readonly #denials: LocalDenials;
  readonly #ids: ExpiringMap<KnownId>;
  readonly #hash: Hash64 = { lo: 0, hi: 0 };
  readonly #counts = { local: 0, denials: 0, central: 0, spent: 0 };
  #one: OneOutcome | undefined;

  constructor(centre: CentralCounters, options: LeasedCountersOptions = {}) {
    checkOptions(options, optionForms, { name: "LeasedCounters", code: "invalid_request" });
    const { leasing = true, hotPerSecond = 0.35, refreshMs = 10_000, leaseMs = 20_000, staleMs = 60_000 } = options;
    const { maxLeases = 200_000 } = options;
    const times = { refreshMs, leaseMs, staleMs };
    checkLeaseTimes(times);
    checkAtLeastZero("hotPerSecond", hotPerSecond);
    checkAtLeastZero("maxLeases", maxLeases);
    this.#centre = centre;
    this.#clock = options.clock ?? systemClock;
    this.#held = new HeldLeases(centre, {
      leasing,
      times,
      hotPerSecond,
      coolPerSecond: options.coolPerSecond,
      maxLeases,
      clock: this.#clock,
      callLater: options.callLater ?? callLater,
    });
    this.#denials = new LocalDenials(leasing ? (options.maxDenialMs ?? 1000) : 0);
    this.#ids = new ExpiringMap(options.maxIds ?? 100_000);
    this.hotKeys = options.hotKeys ?? new HotKeys({ clock: this.#clock });
  }

  get reportsOutages(): boolean {
    return this.#centre.reportsOutages === true;
  }

  get leases(): boolean {
    return this.#held.leasing;
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
    asker: OneAsker<T>,
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
        return this.#spentOne(leased, cost, nowMs);
      }
    }
    if (!this.#denials.isEmpty(nowMs)) {
      const denial = this.#denials.find(lo, hi, windows, cost, nowMs);
      if (denial !== undefined) {
        this.#counts.denials += 1;
        this.hotKeys.noteDenied(lo, hi);
        return { ...denial.outcome, atMs: denial.atMs };
      }
    }
    const asked: ResolvedLimit = { limit, windows, subject, cost, group: 0 };
    if (leased === undefined || leased.gone) this.#held.leaseIfHot(asked, lo, hi, nowMs);
    this.#counts.central += 1;
    return this.#askCentre(asked, request, asker, lo, hi, nowMs);
  }

  /** `lo` and `hi` name the counter, and `nowMs` is when it was asked for. */
  #askCentre<T>(
    asked: ResolvedLimit,
    request: CheckRequest,
    asker: OneAsker<T>,
    lo: number,
    hi: number,
    nowMs: number,
  ): Readonly<OneOutcome> | Promise<T> {
    const note = (outcome: Readonly<OneOutcome>): void => {
      if (outcome.fits !== "now") this.#noteDenial(lo, hi, asked, outcomeOf(outcome), nowMs, outcome.atMs);
    };
    const { limit, windows, subject, cost } = asked;
    if (this.#centre.takeOne !== undefined) {
      const answer = this.#centre.takeOne(limit, windows, subject, cost, request, {
        decide: (_limit, _subject, _cost, outcome) => {
          note(outcome);
          return asker.decide(limit, subject, cost, outcome);
        },
        fail: (_request, error) => asker.fail(request, error),
      });
      if (!(answer instanceof Promise)) note(answer);
      return answer;
    }
    const { deadlineMs } = request;
    const answer = this.#centre.take([asked], deadlineMs === undefined ? undefined : { deadlineMs });
    const decide = ({ outcomes, atMs }: TakeAnswer): T => {
      const outcome = { ...outcomes[0]!, atMs };
      note(outcome);
      return asker.decide(limit, subject, cost, outcome);
    };
    if (!(answer instanceof Promise)) return Promise.resolve(decide(answer));
    return answer.then(decide, (error: unknown) => asker.fail(request, error));
  }

  take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer | Promise<TakeAnswer> {
    if (limits.length === 0) return this.#centre.take(limits, options);
    if (options?.id !== undefined) return this.#takeWithId(limits, options, options.id);
    if (options?.receipt === true || isAnyRecorded(limits, options)) return this.#takeAtCentre(limits, options, true);
    const nowMs = this.#clock.nowMs();
    const { reserved, rest, due, denied } = this.#reserve(limits, nowMs, options?.details === true);
    const isLocal = rest.length === 0;
    if (isLocal || denied !== undefined) this.#settleAll(reserved, limits, () => isLocal);
    // Not before, so that the centre is told what was spent.
    this.#fetchAll(due, nowMs);
    if (denied !== undefined) {
      this.#counts.denials += 1;
      return this.#deniedHere(limits, reserved, denied, nowMs);
    }
    if (isLocal) {
      this.#counts.local += 1;
      return this.#spentAll(limits, reserved, nowMs);
    }
    this.#counts.central += 1;
    let answer: TakeAnswer | Promise<TakeAnswer>;
    try {
      const asked = rest.length === limits.length ? limits : rest.map((index) => limits[index]!);
      answer = this.#centre.take(asked, options);
    } catch (error) {
      this.#settleAll(reserved, limits, () => false);
      throw error;
    }
    const combine = (central: TakeAnswer): TakeAnswer => this.#combine(limits, rest, reserved, central, nowMs);
    if (!(answer instanceof Promise)) return combine(answer);
    return answer.then(combine, (error: unknown) => {
      this.#settleAll(reserved, limits, () => false);
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
        held[i] === undefined ? asked.next().value! : this.#describe(held[i], cost, nowMs),
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

  /** What other nodes deny, they deny for a second at most; what they have leased is spent as it was. */
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

  /** Somebody else's lease: the centre's business. */
  lease(limits: readonly ResolvedLimit[], ask: LeaseAsk): LeaseAnswer | Promise<LeaseAnswer> {
    return this.#centre.lease(limits, ask);
  }

  /** Gives everything back, as far as the centre answers within that time, and leases nothing any more. */
  drain(withinMs: number = drainWithinMs): Promise<void> {
    return this.#held.drain(withinMs);
  }

  async close(): Promise<void> {
    await this.drain();
    await this.#centre.close();
  }

  /** Sets aside what is in hand. Stops at the first limit that is denied here, unless every outcome is wanted. */
  #reserve(
    limits: readonly ResolvedLimit[],
    nowMs: number,
    details: boolean,
  ): { reserved: Reserved[]; rest: number[]; due: LeasedCounter[]; denied: Denied | undefined } {
    const reserved: Reserved[] = [];
    const rest: number[] = [];
    const due: LeasedCounter[] = [];
    let denied: Denied | undefined;
    for (let index = 0; index < limits.length; index++) {
      const asked = limits[index]!;
      const { limit, windows, subject, cost, group } = asked;
      this.#hashCounter(limit, subject);
      const { lo, hi } = this.#hash;
      this.hotKeys.note(limit, subject, lo, hi, nowMs);
      const leased = this.#held.find(lo, hi);
      if (leased !== undefined && (leased.windows === windows || this.#held.adopts(leased, limit, windows, nowMs))) {
        const era = leased.lease.reserve(cost, nowMs);
        if (leased.lease.isDue(nowMs)) due.push(leased);
        if (era !== -1) {
          reserved.push({ index, leased, era });
          continue;
        }
      }
      rest.push(index);
      if (group === 0 && !details && !this.#denials.isEmpty(nowMs)) {
        const denial = this.#denials.find(lo, hi, windows, cost, nowMs);
        if (denial !== undefined) {
          this.hotKeys.noteDenied(lo, hi);
          denied = { index, ...denial };
          break;
        }
      }
      if (leased === undefined || leased.gone) this.#held.leaseIfHot(asked, lo, hi, nowMs);
    }
    return { reserved, rest, due, denied };
  }

  /** An id is remembered where its request is decided: here, only if nothing of it is decided at the centre. */
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
      // What the centre was asked it is asked again, whatever is in hand by then: it knows whether it was charged.
      if (answer !== undefined || limits.every(isLeasable)) {
        const untilMs = nowMs + (options.idTtlMs ?? defaultIdTtlMs);
        this.#ids.set(id, { fingerprintLo, fingerprintHi, answer }, untilMs, nowMs);
      }
      if (answer !== undefined) return answer;
    }
    return this.#takeAtCentre(limits, options, staysCentral);
  }

  /** Undefined where not all of it is in hand: nothing is spent then. */
  #takeHere(limits: readonly ResolvedLimit[], nowMs: number): TakeAnswer | undefined {
    const { reserved, rest, due } = this.#reserve(limits, nowMs, true);
    const isLocal = rest.length === 0;
    this.#settleAll(reserved, limits, () => isLocal);
    this.#fetchAll(due, nowMs);
    if (!isLocal) return undefined;
    this.#counts.local += 1;
    return this.#spentAll(limits, reserved, nowMs);
  }

  /**
   * All of it, whatever is in hand. Denials are not repeated here: a repetition may be one of a request that was taken. `isNew`: hot keys
   * have not heard of it yet.
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

  /** What was decided at the centre, and what was set aside here for it. */
  #combine(
    limits: readonly ResolvedLimit[],
    rest: readonly number[],
    reserved: readonly Reserved[],
    central: TakeAnswer,
    nowMs: number,
  ): TakeAnswer {
    const outcomes: LimitOutcome[] = [];
    const refused = new Set<number>();
    for (let i = 0; i < rest.length; i++) {
      const index = rest[i]!;
      const outcome = central.outcomes[i]!;
      outcomes[index] = outcome;
      if (outcome.fits === "now") continue;
      refused.add(limits[index]!.group);
      if (!central.taken) this.#noteDenialOf(limits[index]!, outcome, nowMs, central.atMs);
    }
    const isSpent = ({ group }: ResolvedLimit): boolean => central.taken && !refused.has(group);
    this.#settleAll(reserved, limits, isSpent);
    if (reserved.length === 0) return central;
    for (const { index, leased } of reserved) outcomes[index] = this.#describe(leased, limits[index]!.cost, nowMs);
    return { ...central, outcomes };
  }

  #spentAll(limits: readonly ResolvedLimit[], reserved: readonly Reserved[], nowMs: number): TakeAnswer {
    const outcomes = reserved.map(({ leased, index }) => this.#describe(leased, limits[index]!.cost, nowMs));
    return { taken: true, atMs: nowMs + this.#held.aheadMs, outcomes, receipt: undefined, replayed: false };
  }

  #deniedHere(
    limits: readonly ResolvedLimit[],
    reserved: readonly Reserved[],
    denied: Denied,
    nowMs: number,
  ): TakeAnswer {
    const outcomes = limits.map(({ windows }) => unlookedAt(windows[0]!));
    for (const { index, leased } of reserved) outcomes[index] = this.#describe(leased, limits[index]!.cost, nowMs);
    outcomes[denied.index] = denied.outcome;
    return { taken: false, atMs: denied.atMs, outcomes, receipt: undefined, replayed: false };
  }

  /** How the counter stands as far as this node knows: as the centre said last, by now, and what is in hand on top. */
  #describe(leased: LeasedCounter, cost: number, nowMs: number): LimitOutcome {
    const outcome = outcomeOf(this.#spentOne(leased, cost, nowMs));
    const remaining = leased.leastLeft(outcome.remaining);
    return remaining === outcome.remaining ? outcome : { ...outcome, remaining };
  }

  #spentOne(leased: LeasedCounter, cost: number, nowMs: number): Readonly<OneOutcome> {
    this.#one ??= createOneOutcome(leased.window);
    leased.describe(cost, nowMs, this.#one);
    this.#one.atMs = nowMs + this.#held.aheadMs;
    return this.#one;
  }

  #settleAll(
    reserved: readonly Reserved[],
    limits: readonly ResolvedLimit[],
    isSpent: (limit: ResolvedLimit) => boolean,
  ): void {
    for (const { leased, index, era } of reserved) {
      const limit = limits[index]!;
      const spent = isSpent(limit);
      leased.lease.settle(era, limit.cost, spent);
      if (spent) this.#counts.spent += limit.cost;
      // The lease has ended meanwhile, and this is left over.
      if (leased.gone && !leased.lease.asking) void this.#held.returnHeld(leased, this.#clock.nowMs());
    }
  }

  #fetchAll(due: readonly LeasedCounter[], nowMs: number): void {
    for (const leased of due) if (leased.lease.isDue(nowMs)) this.#held.fetch(leased, nowMs);
  }

  #noteDenialOf(asked: ResolvedLimit, outcome: LimitOutcome, askedMs: number, atMs: number): void {
    this.#hashCounter(asked.limit, asked.subject);
    this.#noteDenial(this.#hash.lo, this.#hash.hi, asked, outcome, askedMs, atMs);
  }

  #noteDenial(
    lo: number,
    hi: number,
    asked: ResolvedLimit,
    outcome: LimitOutcome,
    askedMs: number,
    atMs: number,
  ): void {
    this.hotKeys.noteDenied(lo, hi);
    const { policy, blockForMs } = asked.limit;
    // The denial that begins a block is not the one that the block gives.
    if (blockForMs > 0 && outcome.fits === "later") return;
    if (policy.counters !== "exact") this.#denials.note(lo, hi, asked, outcome, askedMs, atMs);
  }

  /** What was denied may stand otherwise now. */
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

  /** The leased counter that a cost would be spent of. */
  #findHeld(asked: ResolvedLimit, nowMs: number): LeasedCounter | undefined {
    const leased = this.#findLeased(asked);
    if (leased === undefined || (leased.windows !== asked.windows && !isAlike(leased, asked))) return undefined;
    return leased.lease.holds(asked.cost, nowMs) ? leased : undefined;
  }
}

/** Records are kept at the centre, so what is recorded is decided there. */
function isAnyRecorded(limits: readonly ResolvedLimit[], options: PeekOptions | undefined): boolean {
  return options?.record === true || limits.some(({ limit }) => limit.policy.countDenials);
}

/** Which limit was denied here, and how. */
interface Denied extends LocalDenial {
  readonly index: number;
}

/** An outcome to keep, of one that is used again and again. */
function outcomeOf(one: Readonly<OneOutcome>): LimitOutcome {
  const { fits, window, remaining, retryAfterMs, resetAfterMs, moreAfterMs, queuePosition, queueDelayMs } = one;
  return {
    fits,
    window,
    remaining,
    windowRemaining: remaining,
    retryAfterMs,
    resetAfterMs,
    moreAfterMs,
    queuePosition,
    queueDelayMs,
  };
}

/** Of a limit beside one that denies nobody is told; see `TakeOptions.details`. */
function unlookedAt(window: CompiledWindow): LimitOutcome {
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
