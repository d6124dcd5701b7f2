import { queuePosition } from "../algorithms/arrival.ts";
import { type CallLater, type Clock, callLater, systemClock } from "../clock.ts";
import type {
  CentralCounters,
  LeaseAnswer,
  LeaseAsk,
  LimitOutcome,
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
import { HotKeys } from "../hot-keys/hot-keys.ts";
import type { CompiledLimit, CompiledWindow } from "../match/compiled.ts";
import { allowanceOf, isLeasable, leastAllowanceOf } from "./allowance.ts";
import { Heat } from "./heat.ts";
import { Lease, type LeaseTimes } from "./lease.ts";
import { LeaseTable } from "./lease-table.ts";
import { LocalDenials } from "./local-denials.ts";

export interface LeasedCountersOptions {
  /** False: everything is decided at the centre, and hot keys are only watched. */
  readonly leasing?: boolean | undefined;
  /** A lease is sized to last so long at the rate it is spent at. Absent: 5 000. */
  readonly refreshMs?: number | undefined;
  /** How long after it was asked for a lease is renewed, or given back. Absent: 20 000. */
  readonly leaseMs?: number | undefined;
  /** How much longer what is in hand may be spent while the centre does not answer. Absent: 60 000. */
  readonly staleMs?: number | undefined;
  /** From so many decisions per second on a counter is leased, and to so few it stays so. Absent: 1, and a quarter of it. */
  readonly hotPerSecond?: number | undefined;
  readonly coolPerSecond?: number | undefined;
  /** How many counters are leased at most, half a kilobyte each. Absent: 50 000. */
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

/** Numbers that only grow, but for the first three. */
export interface LeasedCountersStats {
  /** Counters that are leased, units in hand, and leases that are over and still spent, because the centre does not answer. */
  readonly leases: number;
  readonly tokens: number;
  readonly stale: number;
  /** Decisions by what was in hand, by denials that were repeated, and by the centre. */
  readonly local: number;
  readonly denials: number;
  readonly central: number;
  /** Calls for leases that are over: all of them, those that were granted nothing, and those without an answer. */
  readonly fetches: number;
  readonly refused: number;
  readonly failed: number;
  /** Units: granted, spent, given back, and ended unspent. */
  readonly granted: number;
  readonly spent: number;
  readonly returned: number;
  readonly lost: number;
}

/** Every lease is looked at once a second, a tenth of them at a time. */
const sweepEveryMs = 100;
const sweepParts = 10;
const defaultIdTtlMs = 10 * 60 * 1000;
const drainWithinMs = 2000;
const callsTogether = 500;

/** One counter that is leased: all windows of one limit, for one subject. */
interface LeasedCounter {
  readonly lo: number;
  readonly hi: number;
  readonly subject: string;
  limit: CompiledLimit;
  windows: readonly CompiledWindow[];
  readonly lease: Lease;
  /** What the centre said last, when it was asked, and what time it was there. */
  outcome: LimitOutcome | undefined;
  heardMs: number;
  atMs: number;
  /** What it has lost so far, as it was counted. */
  lostCounted: number;
  /** The call that is on its way. */
  calling: Promise<void> | undefined;
  gone: boolean;
}

/** A leased counter that something is set aside of for one request. */
interface Reserved {
  readonly index: number;
  readonly leased: LeasedCounter;
  readonly era: number;
}

/** An id whose request was decided here; or, where there is no answer, at the centre, which remembers it. */
interface KnownId {
  readonly fingerprint: string;
  readonly answer: TakeAnswer | undefined;
}

/**
 * Counters that stand on others, the *centre*. Counters that are hot are leased: so much is taken from the centre at once, and spent
 * here without asking. What the centre denied is denied here until it may be retried. Everything else is the centre's. By how much
 * a limit may be exceeded is its policy's `max_overshoot`, whatever the number of nodes; see docs/leases.md.
 *
 * Nothing runs before the first lease, and one timer at most while there are any.
 */
export class LeasedCounters implements CentralCounters {
  readonly local = false;
  readonly hotKeys: HotKeys;
  readonly #centre: CentralCounters;
  readonly #clock: Clock;
  readonly #callLater: CallLater;
  readonly #times: LeaseTimes;
  readonly #hotPerSecond: number;
  readonly #coolPerSecond: number;
  readonly #table: LeaseTable<LeasedCounter>;
  readonly #heat: Heat;
  readonly #denials: LocalDenials;
  readonly #ids: ExpiringMap<KnownId>;
  readonly #hash: Hash64 = { lo: 0, hi: 0 };
  readonly #counts = {
    local: 0,
    denials: 0,
    central: 0,
    fetches: 0,
    refused: 0,
    failed: 0,
    granted: 0,
    spent: 0,
    returned: 0,
    lost: 0,
  };
  #one: OneOutcome | undefined;
  #leasing: boolean;
  #cancelSweep: (() => void) | undefined;
  #sweepPart = 0;
  #draining: Promise<void> | undefined;

  constructor(centre: CentralCounters, options: LeasedCountersOptions = {}) {
    this.#centre = centre;
    this.#clock = options.clock ?? systemClock;
    this.#callLater = options.callLater ?? callLater;
    this.#times = {
      refreshMs: options.refreshMs ?? 5000,
      leaseMs: options.leaseMs ?? 20_000,
      staleMs: options.staleMs ?? 60_000,
    };
    this.#leasing = options.leasing ?? true;
    this.#hotPerSecond = options.hotPerSecond ?? 1;
    this.#coolPerSecond = options.coolPerSecond ?? this.#hotPerSecond / 4;
    this.#table = new LeaseTable(options.maxLeases ?? 50_000);
    this.#heat = new Heat(this.#clock.nowMs());
    this.#denials = new LocalDenials(this.#leasing ? (options.maxDenialMs ?? 1000) : 0);
    this.#ids = new ExpiringMap(options.maxIds ?? 100_000);
    this.hotKeys = options.hotKeys ?? new HotKeys({ clock: this.#clock });
  }

  get leases(): boolean {
    return this.#leasing;
  }

  get stats(): LeasedCountersStats {
    const nowMs = this.#clock.nowMs();
    let tokens = 0;
    let stale = 0;
    for (const leased of this.#table) {
      tokens += leased.lease.spendable(nowMs);
      if (leased.lease.isStale(nowMs)) stale += 1;
    }
    return { leases: this.#table.size, tokens, stale, ...this.#counts };
  }

  takeOne(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
    deadlineMs: number | undefined,
  ): Readonly<OneOutcome> | Promise<TakeAnswer> {
    hashText(subject, this.#hash);
    const lo = this.#hash.lo ^ limit.hashLo;
    const hi = this.#hash.hi ^ limit.hashHi;
    const nowMs = this.#clock.nowMs();
    this.hotKeys.note(limit, subject, lo, hi, nowMs);
    const leased = this.#table.size === 0 ? undefined : this.#table.find(lo, hi);
    if (leased !== undefined) {
      if (leased.windows !== windows) this.#adopt(leased, limit, windows, nowMs);
      const isSpent = leased.lease.spend(cost, nowMs);
      if (leased.lease.isDue(nowMs)) this.#fetch(leased, nowMs);
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
    if (leased === undefined) this.#leaseIfHot(asked, lo, hi, nowMs);
    this.#counts.central += 1;
    const answer = this.#centre.take([asked], deadlineMs === undefined ? undefined : { deadlineMs });
    const noteDenial = (decided: TakeAnswer): TakeAnswer => {
      if (!decided.taken) this.#noteDenial(lo, hi, asked, decided.outcomes[0]!, nowMs, decided.atMs);
      return decided;
    };
    return answer instanceof Promise ? answer.then(noteDenial) : Promise.resolve(noteDenial(answer));
  }

  take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer | Promise<TakeAnswer> {
    if (limits.length === 0 || options?.receipt === true) return this.#centre.take(limits, options);
    if (options?.id !== undefined) return this.#takeWithId(limits, options, options.id);
    const nowMs = this.#clock.nowMs();
    const { reserved, rest, denied } = this.#reserve(limits, nowMs, options?.details === true);
    if (denied !== undefined) {
      this.#settleAll(reserved, limits, () => false);
      this.#counts.denials += 1;
      return this.#deniedHere(limits, reserved, denied, nowMs);
    }
    if (rest.length === 0) {
      this.#settleAll(reserved, limits, () => true);
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
    const nowMs = this.#clock.nowMs();
    const held = limits.map((limit) => this.#findHeld(limit, nowMs));
    if (limits.length === 0 || held.includes(undefined)) return this.#centre.peek(limits, options);
    const outcomes = limits.map((limit, i) => this.#describe(held[i]!, limit.cost, nowMs));
    return { taken: false, atMs: atMsOf(held[0]!, nowMs), outcomes, receipt: undefined, replayed: false };
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
    this.#draining ??= this.#giveAllBack(withinMs);
    return this.#draining;
  }

  async #giveAllBack(withinMs: number): Promise<void> {
    this.#leasing = false;
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
    let timeIsUp = false;
    let cancel: (() => void) | undefined;
    const timer = new Promise<void>((resolve) => {
      cancel = this.#callLater(() => {
        timeIsUp = true;
        resolve();
      }, withinMs);
    });
    const all = [...this.#table];
    for (let i = 0; i < all.length && !timeIsUp; i += callsTogether) {
      const nowMs = this.#clock.nowMs();
      const given = all.slice(i, i + callsTogether).map((leased) => this.#giveBack(leased, nowMs));
      await Promise.race([Promise.all(given), timer]);
    }
    cancel?.();
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
  ): { reserved: Reserved[]; rest: number[]; denied: Denied | undefined } {
    const reserved: Reserved[] = [];
    const rest: number[] = [];
    let denied: Denied | undefined;
    for (let index = 0; index < limits.length; index++) {
      const asked = limits[index]!;
      const { limit, windows, subject, cost, group } = asked;
      hashText(subject, this.#hash);
      const lo = this.#hash.lo ^ limit.hashLo;
      const hi = this.#hash.hi ^ limit.hashHi;
      this.hotKeys.note(limit, subject, lo, hi, nowMs);
      const leased = this.#table.find(lo, hi);
      if (leased !== undefined) {
        if (leased.windows !== windows) this.#adopt(leased, limit, windows, nowMs);
        const era = leased.lease.reserve(cost, nowMs);
        if (leased.lease.isDue(nowMs)) this.#fetch(leased, nowMs);
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
          denied = { index, outcome: denial.outcome };
          break;
        }
      }
      if (leased === undefined) this.#leaseIfHot(asked, lo, hi, nowMs);
    }
    return { reserved, rest, denied };
  }

  /** An id is remembered where its request is decided: here, only if nothing of it is decided at the centre. */
  #takeWithId(limits: readonly ResolvedLimit[], options: TakeOptions, id: string): TakeAnswer | Promise<TakeAnswer> {
    const nowMs = this.#clock.nowMs();
    const fingerprint = options.fingerprint ?? "";
    const known = this.#ids.find(id, nowMs);
    if (known?.answer !== undefined) {
      if (known.fingerprint !== fingerprint) throw idempotencyConflict(id);
      return { ...known.answer, replayed: true };
    }
    const untilMs = nowMs + (options.idTtlMs ?? defaultIdTtlMs);
    if (known === undefined) {
      const { reserved, rest } = this.#reserve(limits, nowMs, true);
      const isLocal = rest.length === 0;
      this.#settleAll(reserved, limits, () => isLocal);
      if (isLocal) {
        this.#counts.local += 1;
        const answer = this.#spentAll(limits, reserved, nowMs);
        this.#ids.set(id, { fingerprint, answer }, untilMs, nowMs);
        return answer;
      }
      // What the centre was asked it is asked again, whatever is in hand by then: it knows whether it was charged.
      if (limits.every(isLeasable)) this.#ids.set(id, { fingerprint, answer: undefined }, untilMs, nowMs);
    }
    this.#counts.central += 1;
    return this.#centre.take(limits, options);
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
    return { taken: true, atMs: atMsOf(reserved[0]!.leased, nowMs), outcomes, receipt: undefined, replayed: false };
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
    return { taken: false, atMs: this.#clock.epochMs(), outcomes, receipt: undefined, replayed: false };
  }

  /** How the counter stands as far as this node knows: as the centre said last, by now, and what is in hand on top. */
  #describe(leased: LeasedCounter, cost: number, nowMs: number): LimitOutcome {
    const one = this.#spentOne(leased, cost, nowMs);
    const { fits, window, remaining, retryAfterMs, resetAfterMs, queuePosition: position, queueDelayMs } = one;
    return { fits, window, remaining, retryAfterMs, resetAfterMs, queuePosition: position, queueDelayMs };
  }

  #spentOne(leased: LeasedCounter, cost: number, nowMs: number): Readonly<OneOutcome> {
    const outcome = leased.outcome!;
    const { window } = outcome;
    this.#one ??= { ...outcome, atMs: 0 };
    const one = this.#one;
    const passedMs = nowMs - leased.heardMs;
    const { tokens } = leased.lease;
    one.window = window;
    one.atMs = leased.atMs + passedMs;
    one.fits = "now";
    one.retryAfterMs = 0;
    one.queuePosition = 0;
    one.queueDelayMs = 0;
    if (window.kind === "arrival") {
      const { intervalMs, capacity } = window;
      const aheadMs = Math.max(outcome.resetAfterMs - passedMs - tokens * intervalMs, 0);
      const refilled = outcome.remaining + tokens + Math.floor(passedMs / intervalMs);
      one.remaining = Math.min(refilled, Math.floor(capacity));
      one.resetAfterMs = Math.ceil(aheadMs);
      if (window.leaky) {
        one.queuePosition = Math.max(queuePosition(window, aheadMs), cost);
        one.queueDelayMs = Math.max(Math.ceil(aheadMs - cost * intervalMs), 0);
      }
    } else {
      one.remaining = Math.min(outcome.remaining + tokens, window.capacity);
      one.resetAfterMs = Math.max(Math.ceil(outcome.resetAfterMs - passedMs), 0);
    }
    return one;
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
      if (leased.gone && !leased.lease.asking) void this.#returnHeld(leased, this.#clock.nowMs());
    }
  }

  #leaseIfHot(asked: ResolvedLimit, lo: number, hi: number, nowMs: number): void {
    if (!this.#leasing || this.#table.isFull) return;
    const { policy } = asked.limit;
    // A steady rate shows as up to twice as much.
    const perSecond = this.#heat.note(lo, hi, nowMs) / 2;
    if (perSecond < this.#hotPerSecond && policy.counters !== "leased") return;
    if (!isLeasable(asked)) return;
    const allowance = allowanceOf(asked);
    if (allowance < leastAllowanceOf(policy.counters)) return;
    const { limit, windows, subject } = asked;
    const leased: LeasedCounter = {
      lo,
      hi,
      subject,
      limit,
      windows,
      lease: new Lease(this.#times, allowance, perSecond, nowMs),
      outcome: undefined,
      heardMs: nowMs,
      atMs: 0,
      lostCounted: 0,
      calling: undefined,
      gone: false,
    };
    this.#table.add(leased);
    this.#sweepLater();
    this.#fetch(leased, nowMs);
  }

  /** Other policies, or another tier. What is in hand is spent on, unless less may be in hand now: then it is given back. */
  #adopt(leased: LeasedCounter, limit: CompiledLimit, windows: readonly CompiledWindow[], nowMs: number): void {
    const { outcome, windows: windowsBefore } = leased;
    const allowanceBefore = allowanceOf(leased);
    leased.limit = limit;
    leased.windows = windows;
    const allowance = allowanceOf(leased);
    leased.lease.resize(Math.max(allowance, 1));
    if (outcome !== undefined)
      leased.outcome = { ...outcome, window: windows[windowsBefore.indexOf(outcome.window)] ?? windows[0]! };
    if (allowance < allowanceBefore || !isLeasable(leased)) void this.#giveBack(leased, nowMs);
  }

  #fetch(leased: LeasedCounter, nowMs: number): void {
    if (!this.#leasing || leased.gone) return;
    void this.#call(leased, leased.lease.ask(nowMs), nowMs);
  }

  /** Ends a lease. What is on its way is waited for, and given back when it arrives. */
  #giveBack(leased: LeasedCounter, nowMs: number): Promise<void> | undefined {
    leased.gone = true;
    this.#table.delete(leased);
    return leased.lease.asking ? leased.calling : this.#returnHeld(leased, nowMs);
  }

  #returnHeld(leased: LeasedCounter, nowMs: number): Promise<void> | undefined {
    const { lease } = leased;
    const ask = lease.giveBack(nowMs);
    if (ask !== undefined) return this.#call(leased, ask, nowMs);
    // Strays are spoken of to nobody.
    lease.abandon();
    this.#countLost(leased);
    return undefined;
  }

  #call(leased: LeasedCounter, ask: LeaseAsk, askedMs: number): Promise<void> {
    leased.calling = this.#ask(leased, ask, askedMs).finally(() => this.#countLost(leased));
    return leased.calling;
  }

  async #ask(leased: LeasedCounter, ask: LeaseAsk, askedMs: number): Promise<void> {
    const { lease, limit, windows, subject } = leased;
    let answer: LeaseAnswer;
    try {
      answer = await this.#centre.lease([{ limit, windows, subject, cost: 1, group: 0 }], ask);
    } catch {
      // Why the centre does not answer is told where it is asked for decisions; here it means that nothing is known of this call.
      lease.failed(this.#clock.nowMs());
      if (leased.gone) lease.abandon();
      if (ask.want === 0) return;
      this.#counts.fetches += 1;
      this.#counts.failed += 1;
      return;
    }
    const nowMs = this.#clock.nowMs();
    lease.granted(answer, nowMs);
    this.#counts.returned += ask.settled?.returned ?? 0;
    this.#counts.granted += answer.granted;
    if (ask.want > 0) this.#counts.fetches += 1;
    if (ask.want > 0 && answer.granted === 0) this.#counts.refused += 1;
    const outcome = answer.outcomes[0];
    if (outcome !== undefined) {
      leased.outcome = outcome;
      leased.heardMs = askedMs;
      leased.atMs = answer.atMs;
    }
    if (!leased.gone) return;
    // After a give-back there is something in hand only if it was set aside until then.
    if (ask.want > 0 || lease.tokens > 0) await this.#returnHeld(leased, nowMs);
  }

  #countLost(leased: LeasedCounter): void {
    const { lost } = leased.lease;
    this.#counts.lost += lost - leased.lostCounted;
    leased.lostCounted = lost;
  }

  #sweepLater(): void {
    this.#cancelSweep ??= this.#callLater(() => {
      this.#cancelSweep = undefined;
      this.#sweep(this.#clock.nowMs());
      if (this.#table.size > 0 && this.#leasing) this.#sweepLater();
    }, sweepEveryMs);
  }

  /** Ends leases that cooled. While the centre does not answer they stay, because they are all that there is, and it is asked. */
  #sweep(nowMs: number): void {
    this.#sweepPart = (this.#sweepPart + 1) % sweepParts;
    for (const leased of this.#table.part(this.#sweepPart, sweepParts)) {
      const { lease } = leased;
      if (!lease.isCool(this.#coolPerSecond, nowMs)) continue;
      if (!lease.isStale(nowMs)) void this.#giveBack(leased, nowMs);
      else if (lease.isDue(nowMs)) this.#fetch(leased, nowMs);
    }
  }

  #noteDenialOf(asked: ResolvedLimit, outcome: LimitOutcome, askedMs: number, atMs: number): void {
    hashText(asked.subject, this.#hash);
    const { hashLo, hashHi } = asked.limit;
    this.#noteDenial(this.#hash.lo ^ hashLo, this.#hash.hi ^ hashHi, asked, outcome, askedMs, atMs);
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
      hashText(subject, this.#hash);
      this.#denials.forget(this.#hash.lo ^ limit.hashLo, this.#hash.hi ^ limit.hashHi);
    }
  }

  #findLeased({ limit, subject }: ResolvedLimit): LeasedCounter | undefined {
    hashText(subject, this.#hash);
    return this.#table.find(this.#hash.lo ^ limit.hashLo, this.#hash.hi ^ limit.hashHi);
  }

  /** The leased counter that a cost would be spent of. */
  #findHeld(asked: ResolvedLimit, nowMs: number): LeasedCounter | undefined {
    const leased = this.#findLeased(asked);
    return leased?.outcome !== undefined && leased.lease.holds(asked.cost, nowMs) ? leased : undefined;
  }
}

/** Which limit was denied here, and how. */
interface Denied {
  readonly index: number;
  readonly outcome: LimitOutcome;
}

function atMsOf({ atMs, heardMs }: LeasedCounter, nowMs: number): number {
  return atMs + nowMs - heardMs;
}

/** Of a limit beside one that denies nobody is told; see `TakeOptions.details`. */
function unlookedAt(window: CompiledWindow): LimitOutcome {
  return {
    fits: "now",
    window,
    remaining: Math.floor(window.capacity),
    retryAfterMs: 0,
    resetAfterMs: 0,
    queuePosition: 0,
    queueDelayMs: 0,
  };
}
