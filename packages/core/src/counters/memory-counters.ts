import { aClock, anObject, checkOptions, numberFrom, type OptionForms, trueOrFalse } from "../check-options.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { HotKeys } from "../hot-keys/hot-keys.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import { defaultIdTtlMs } from "../policy/bounds.ts";
import { isLeasable, leaseAllowance, leaseEpoch } from "./allowance.ts";
import { Blocks } from "./blocks.ts";
import { checkLeaseAsk } from "./check-lease-ask.ts";
import { CounterOwners } from "./counter-owners.ts";
import type {
  CentralCounters,
  LeaseAnswer,
  LeaseAsk,
  LimitRecord,
  PeekOptions,
  Receipt,
  ResolvedLimit,
  SettledGrant,
  TakeAnswer,
  TakeOptions,
  WindowReading,
} from "./counter-store.ts";
import { isRecorded } from "./counter-store.ts";
import { CounterBudget } from "./counter-table.ts";
import { ExpiringMap } from "./expiring-map.ts";
import { type Hash64, hashText } from "./hash.ts";
import { Holds } from "./holds.ts";
import { idempotencyConflict } from "./idempotency-conflict.ts";
import { LeaseLedgers } from "./lease-ledgers.ts";
import { LimitRecords } from "./limit-records.ts";
import { noRoom } from "./no-room.ts";
import { type MemoryPlan, PlannedTakes } from "./planned-takes.ts";
import { Receipts, type TakenWindow } from "./receipts.ts";
import { SeveralArrivals } from "./several-arrivals.ts";
import { SeveralSpeakers } from "./several-speakers.ts";
import type { AskedAgain, SeveralOutcome, SeveralTakes } from "./several-takes.ts";
import { createOneOutcome, type OneOutcome, type SingleTakes } from "./single-takes.ts";
import { SteadyClock } from "./steady-clock.ts";
import { StoreUnavailable } from "./store-unavailable.ts";
import { fits, isTaken, outcomesFromPlan } from "./take-plan.ts";
import { WindowCounters } from "./window-counters.ts";

export interface MemoryCountersOptions {
  readonly clock?: Clock;
  /** How many counters are kept at most. Absent: 4 million. */
  readonly maxCounters?: number;
  /** How many bytes they may take. Absent: 256 MiB. */
  readonly maxBytes?: number;
  /** How many request ids, receipts, holds and leased counters are remembered at most. Absent: 100 000 of each. */
  readonly maxIds?: number;
  /** Whether they stand in for the database of `counters: strong`, as in tests. Absent: such policies are refused. */
  readonly strong?: boolean | undefined;
  /** Notes every decision; must have the same clock. Absent: decisions are not noted. */
  readonly hotKeys?: HotKeys | undefined;
}

const optionForms: OptionForms<MemoryCountersOptions> = {
  clock: aClock,
  maxCounters: numberFrom(0),
  maxBytes: numberFrom(0),
  maxIds: numberFrom(0),
  strong: trueOrFalse,
  hotKeys: anObject,
};

export interface MemoryCountersStats {
  readonly counters: number;
  readonly bytes: number;
  /** Live counters dropped because the store was full. None of them was exhausted. */
  readonly evictedLive: number;
  /** Counters not kept because the store was full of exhausted ones. */
  readonly refused: number;
  /** How often the clock stepped back, or the wall clock either way, by more than a minute. */
  readonly clockAnomalies: number;
  readonly ids: number;
  /** Request ids forgotten before their time, because too many were remembered. */
  readonly idsCutShort: number;
  readonly receipts: number;
  /** Live holds. */
  readonly holds: number;
}

/**
 * Counters in this process's memory: the default store. Idle counters are forgotten; since an idle counter means the
 * same as an absent one, nothing is lost. When the store is full, idle counters go first; if none is found, one goes
 * that has used little of its limit, from the limit with the most counters. A subject at its limit is never forgotten
 * early, so a flood of new ones does not set it free. If nothing else can be forgotten, a new subject is decided
 * without being counted, or denied if its policy fails `closed`. Both kinds of loss are counted.
 */
export class MemoryCounters implements CentralCounters, SingleTakes, SeveralTakes {
  readonly local = true;
  readonly distinct = true;
  readonly useStrong: CentralCounters["useStrong"];
  readonly #clock: SteadyClock;
  readonly #budget: CounterBudget;
  readonly #windows: WindowCounters;
  readonly #blocks: Blocks;
  /** Created with the first record. */
  #records: LimitRecords | undefined;
  readonly #ids: ExpiringMap<Remembered>;
  readonly #receipts: Receipts;
  readonly holds: Holds;
  readonly #planned: PlannedTakes;
  readonly #ledgers: LeaseLedgers;
  /** With the steady clock, the time that ledgers go by: steps of the wall clock do not make them forget. */
  readonly #ledgerOriginMs: number;
  readonly #hotKeys: HotKeys | undefined;
  readonly #subject: Hash64 = { lo: 0, hi: 0 };
  #one: OneOutcome | undefined;
  #arrivals: SeveralArrivals | undefined;
  #several: SeveralSpeakers | undefined;

  constructor(options: MemoryCountersOptions = {}) {
    checkOptions(options, optionForms, { name: "MemoryCounters", code: "invalid_request" });
    this.useStrong = options.strong === true ? () => undefined : undefined;
    this.#clock = new SteadyClock(options.clock ?? systemClock);
    this.#budget = new CounterBudget(options.maxCounters ?? 4_000_000, options.maxBytes ?? 256 * 1024 * 1024);
    const owners = new CounterOwners((owner) => this.#budget.heldBy(owner));
    this.#windows = new WindowCounters(this.#budget, owners);
    this.#blocks = new Blocks(this.#budget, owners);
    const maxIds = options.maxIds ?? 100_000;
    this.#ids = new ExpiringMap(maxIds);
    this.#receipts = new Receipts(maxIds);
    this.holds = new Holds(this.#windows, this.#receipts, this.#clock, maxIds);
    this.#planned = new PlannedTakes(this.#windows, this.#blocks, this.#receipts, this.#clock);
    this.#ledgers = new LeaseLedgers(maxIds);
    this.#ledgerOriginMs = this.#clock.originMs;
    this.#hotKeys = options.hotKeys;
  }

  /** The instant of the latest decision, in milliseconds of the steady clock, exactly. */
  get latestMs(): number {
    return this.#clock.latestMs;
  }

  /** Epoch milliseconds of the steady clock's instant 0. */
  get originMs(): number {
    return this.#clock.originMs;
  }

  get stats(): MemoryCountersStats {
    return {
      counters: this.#budget.counters,
      bytes: this.#budget.bytes,
      evictedLive: this.#budget.evictedLive,
      refused: this.#budget.refused,
      clockAnomalies: this.#clock.anomalies,
      ids: this.#ids.size,
      idsCutShort: this.#ids.cutShort,
      receipts: this.#receipts.size,
      holds: this.holds.size,
    };
  }

  take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer {
    const nowMs = this.#clock.now();
    const id = options?.id;
    const known = id === undefined ? undefined : this.#ids.find(id, nowMs);
    if (id !== undefined && known !== undefined) {
      hashText(options?.fingerprint ?? "", this.#subject);
      if (known.fingerprintLo !== this.#subject.lo || known.fingerprintHi !== this.#subject.hi)
        throw idempotencyConflict(id);
      return { ...known.answer, replayed: true };
    }
    if (options?.holdMs !== undefined && !this.holds.hasRoom) throw noRoom();
    const plan = this.#planned.plan(limits, nowMs);
    if (this.#hotKeys !== undefined) this.#noteAll(limits, limits.length, plan, nowMs);
    const windows: TakenWindow[] | undefined = options?.receipt === true ? [] : undefined;
    this.#planned.carryOut(limits, plan, nowMs, windows);
    const taken = isTaken(plan, 0);
    const answer: TakeAnswer = {
      taken,
      atMs: this.#clock.originMs + nowMs,
      outcomes: outcomesFromPlan(limits, plan, true),
      receipt: windows === undefined ? undefined : this.#hold(windows, options, nowMs),
      replayed: false,
      records: this.#record(limits, plan, options?.record, nowMs),
    };
    if (id !== undefined && taken) {
      hashText(options?.fingerprint ?? "", this.#subject);
      const { lo: fingerprintLo, hi: fingerprintHi } = this.#subject;
      this.#ids.set(id, { fingerprintLo, fingerprintHi, answer }, nowMs + (options?.idTtlMs ?? defaultIdTtlMs), nowMs);
    }
    return answer;
  }

  takeOne(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
  ): Readonly<OneOutcome> {
    const nowMs = this.#clock.now();
    const window = windows[0]!;
    hashText(subject, this.#subject);
    this.#one ??= createOneOutcome(window);
    const one = this.#one;
    one.window = window;
    one.atMs = this.#clock.originMs + nowMs;
    const lo = this.#lo(window);
    const hi = this.#hi(window);
    const placing = this.#windows.takeArrival(window, lo, hi, cost, nowMs, one);
    if (placing === "placed") this.#receipts.begin(window, lo, hi);
    else if (placing === "no_room" && limit.policy.onFailure === "closed") throw noRoom();
    if (this.#hotKeys !== undefined) this.#note(limit, subject, one.fits !== "now", nowMs);
    return one;
  }

  takeSeveral(limits: readonly AskedAgain[], count: number): Readonly<SeveralOutcome> {
    const nowMs = this.#clock.now();
    this.#arrivals ??= new SeveralArrivals(this.#windows, this.#receipts);
    const taken = this.#hotKeys === undefined ? this.#arrivals.take(limits, count, nowMs) : undefined;
    if (taken !== undefined) {
      taken.atMs = this.#clock.originMs + nowMs;
      return taken;
    }
    const plan = this.#planned.planAgain(limits, count, nowMs);
    if (this.#hotKeys !== undefined) this.#noteAll(limits, count, plan, nowMs);
    this.#planned.carryOutAgain(limits, plan, nowMs);
    this.#several ??= new SeveralSpeakers(plan.steps[0]!.window);
    return this.#several.find(plan, count, this.#clock.originMs + nowMs);
  }

  peek(limits: readonly ResolvedLimit[], options?: PeekOptions): TakeAnswer {
    const nowMs = this.#clock.now();
    const outcomes = outcomesFromPlan(limits, this.#planned.plan(limits, nowMs), false);
    const records = this.#record(limits, undefined, options?.record, nowMs);
    return { taken: false, atMs: this.#clock.originMs + nowMs, outcomes, receipt: undefined, replayed: false, records };
  }

  give(receipt: Receipt): boolean {
    const nowMs = this.#clock.now();
    const redeemed = this.#receipts.redeem(receipt, nowMs);
    if (redeemed === undefined) return false;
    let given = false;
    for (const window of redeemed.windows)
      if (this.#windows.give(window, nowMs, this.#clock.originMs) > 0) given = true;
    // What was given back is no longer taken: repeating the request is a new one.
    if (given && redeemed.id !== undefined) this.#ids.delete(redeemed.id);
    return given;
  }

  charge(limits: readonly ResolvedLimit[]): void {
    const nowMs = this.#clock.now();
    for (const { subject, windows, cost, value = "" } of limits) {
      hashText(subject, this.#subject);
      for (const window of windows) {
        if (!window.charges) continue;
        const lo = this.#lo(window);
        const hi = this.#hi(window);
        if (cost < 0) this.#credit(window, lo, hi, -cost, nowMs);
        else if (window.kind === "distinct") this.#planned.chargeValue(window, lo, hi, value, nowMs);
        else if (this.#windows.charge(window, lo, hi, cost, nowMs, this.#clock.originMs) === "placed")
          this.#receipts.begin(window, lo, hi);
      }
    }
    this.#windows.trim(nowMs);
  }

  block(limits: readonly ResolvedLimit[], forMs: number): void {
    const nowMs = this.#clock.now();
    for (const { subject, limit } of limits) {
      if (!limit.blockable) continue;
      hashText(subject, this.#subject);
      if (!this.#blocks.begin(limit, this.#subject, nowMs + forMs, nowMs)) throw new StoreUnavailable("storage_full");
    }
  }

  forget(limits: readonly ResolvedLimit[]): void {
    this.reset(limits);
  }

  reset(limits: readonly ResolvedLimit[]): void {
    for (const { subject, windows, limit } of limits) {
      hashText(subject, this.#subject);
      for (const window of windows) {
        const lo = this.#lo(window);
        const hi = this.#hi(window);
        this.#windows.forget(window, lo, hi);
        this.#receipts.begin(window, lo, hi);
      }
      this.#blocks.forget(limit, this.#subject);
      this.#records?.forget(this.#subject.lo ^ limit.hashLo, this.#subject.hi ^ limit.hashHi);
    }
  }

  read(limit: ResolvedLimit): readonly WindowReading[] {
    return this.#read(limit, this.#clock.now());
  }

  #read({ subject, windows, cost }: ResolvedLimit, nowMs: number): readonly WindowReading[] {
    const { originMs } = this.#clock;
    hashText(subject, this.#subject);
    return windows.map((window) => {
      const at = this.#windows.find(window, this.#lo(window), this.#hi(window));
      const { remaining, resetAfterMs } = this.#windows.verdict(window, at, cost, nowMs, originMs);
      return { window, remaining, resetAfterMs, state: this.#windows.quantities(window, at, nowMs, originMs) };
    });
  }

  lease(limits: readonly ResolvedLimit[], ask: LeaseAsk): LeaseAnswer {
    checkLeaseAsk(ask);
    if (limits.length === 0) return { granted: 0, epoch: 0, atMs: 0, outcomes: [], unspent: 0, forgotten: 0 };
    const nowMs = this.#clock.now();
    const ledgerMs = this.#ledgerOriginMs + nowMs;
    const epoch = leaseEpoch(ledgerMs, ask.holdMs);
    const forgotten = ask.settled === undefined ? 0 : this.#settle(limits, ask.settled, epoch, nowMs);
    const granted = this.#grantable(limits, ask.want, nowMs);
    const costs = limits.map((limit) => ({ ...limit, cost: Math.max(granted, 1), group: 0 }));
    const plan = this.#planned.plan(costs, nowMs);
    if (granted > 0) {
      this.#planned.carryOut(costs, plan, nowMs, undefined);
      for (const limit of limits) this.#ledgers.add(limit, epoch, granted, ledgerMs);
    }
    return {
      granted,
      epoch,
      atMs: this.#clock.originMs + nowMs,
      outcomes: outcomesFromPlan(costs, plan, granted > 0),
      unspent: this.#ledgers.unspent(limits[0]!, ledgerMs),
      forgotten,
    };
  }

  close(): void {}

  /** The receipt of what was taken, or its id as a hold. */
  #hold(windows: readonly TakenWindow[], options: TakeOptions | undefined, nowMs: number): Receipt | undefined {
    if (windows.length === 0) return undefined;
    if (options?.holdMs !== undefined) return this.holds.create(windows, options.holdMs, nowMs);
    return this.#receipts.create(windows, options?.id, nowMs);
  }

  /** Returns how many kept units some ledger does not know. */
  #settle(limits: readonly ResolvedLimit[], settled: SettledGrant, epoch: number, nowMs: number): number {
    let forgotten = 0;
    const ledgerMs = this.#ledgerOriginMs + nowMs;
    for (const limit of limits) {
      const { kept, returned } = this.#ledgers.settle(limit, settled, ledgerMs);
      if (kept > 0) this.#ledgers.add(limit, epoch, kept, ledgerMs);
      forgotten = Math.max(forgotten, settled.kept - kept);
      if (returned === 0) continue;
      hashText(limit.subject, this.#subject);
      for (const window of limit.windows) {
        if (window.charges) this.#credit(window, this.#lo(window), this.#hi(window), returned, nowMs);
      }
    }
    return forgotten;
  }

  /** As much as fits every window, up to half of what the ledgers leave of each allowance. */
  #grantable(limits: readonly ResolvedLimit[], want: number, nowMs: number): number {
    if (!limits.every(isLeasable) || !this.#ledgers.hasRoom(limits, this.#ledgerOriginMs + nowMs)) return 0;
    let most = want;
    for (const limit of limits) {
      const room = leaseAllowance(limit) - this.#ledgers.unspent(limit, this.#ledgerOriginMs + nowMs);
      most = Math.min(most, Math.ceil(room / 2));
    }
    if (most <= 0) return 0;
    const { steps } = this.#planned.plan(
      limits.map((limit) => ({ ...limit, cost: 1 })),
      nowMs,
    );
    for (const { verdict } of steps) most = Math.min(most, Math.floor(verdict.remaining));
    // `remaining` is rounded, so it may be too much.
    while (most > 0 && !this.#fitsAll(limits, most, nowMs)) most -= 1;
    return most;
  }

  #fitsAll(limits: readonly ResolvedLimit[], cost: number, nowMs: number): boolean {
    const { refused } = this.#planned.plan(
      limits.map((limit) => ({ ...limit, cost })),
      nowMs,
    );
    return refused.size === 0;
  }

  #note(limit: CompiledLimit, subject: string, denied: boolean, nowMs: number): void {
    const lo = this.#subject.lo ^ limit.hashLo;
    const hi = this.#subject.hi ^ limit.hashHi;
    this.#hotKeys?.note(limit, subject, lo, hi, nowMs);
    if (denied) this.#hotKeys?.noteDenied(lo, hi);
  }

  #noteAll(limits: readonly ResolvedLimit[], count: number, { steps }: MemoryPlan, nowMs: number): void {
    for (let i = 0; i < count; i++) {
      const { limit, subject } = limits[i]!;
      hashText(subject, this.#subject);
      const denied = steps.some((step) => step.limit === i && !fits(step));
      this.#note(limit, subject, denied, nowMs);
    }
  }

  /** The record of each limit, after noting the decision if there is a plan. Undefined if no limit has one. */
  #record(
    limits: readonly ResolvedLimit[],
    plan: MemoryPlan | undefined,
    record: boolean | undefined,
    nowMs: number,
  ): readonly (LimitRecord | undefined)[] | undefined {
    let recorded: (LimitRecord | undefined)[] | undefined;
    for (let i = 0; i < limits.length; i++) {
      const asked = limits[i]!;
      if (!isRecorded(asked, record)) continue;
      recorded ??= limits.map(() => undefined);
      this.#records ??= new LimitRecords();
      hashText(asked.subject, this.#subject);
      const lo = this.#subject.lo ^ asked.limit.hashLo;
      const hi = this.#subject.hi ^ asked.limit.hashHi;
      const decided = plan && whatDecided(plan, asked.group, i);
      if (decided !== undefined) this.#records.note(lo, hi, asked, decided, nowMs);
      const { denied, updatedMs } = this.#records.read(lo, hi, nowMs);
      recorded[i] = {
        denied,
        updatedMs: updatedMs === undefined ? undefined : this.#clock.originMs + updatedMs,
        windows: record === true ? this.#read(asked, nowMs) : [],
      };
    }
    return recorded;
  }

  /** The hash of a window's counter for the subject that was hashed last. */
  #lo(window: CompiledWindow): number {
    return this.#subject.lo ^ window.hashLo;
  }

  #hi(window: CompiledWindow): number {
    return this.#subject.hi ^ window.hashHi || 1;
  }

  #credit(window: CompiledWindow, lo: number, hi: number, cost: number, nowMs: number): void {
    const credited = this.#windows.credit(window, lo, hi, cost, nowMs, this.#clock.originMs);
    if (credited !== undefined) this.#receipts.credit(window, lo, hi, credited);
  }
}

/** How a limit took part in the decision; undefined if others denied, or it is in shadow mode and did not see it. */
function whatDecided(plan: MemoryPlan, group: number, index: number): "allowed" | "denied" | undefined {
  if (isTaken(plan, group)) return "allowed";
  if (group !== 0 && plan.refused.has(0)) return undefined;
  return plan.steps.some((step) => step.limit === index && !fits(step)) ? "denied" : undefined;
}

/** A request id that was taken: what it is bound to, by its hash, and the answer. */
interface Remembered {
  readonly fingerprintLo: number;
  readonly fingerprintHi: number;
  readonly answer: TakeAnswer;
}
