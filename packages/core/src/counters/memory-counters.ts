import type { ArrivalTake } from "../algorithms/arrival.ts";
import { type Clock, systemClock } from "../clock.ts";
import { SluiceError } from "../errors.ts";
import type { CompiledLimit, CompiledWindow } from "../match/compiled.ts";
import type { CounterStore, Receipt, ResolvedLimit, TakeAnswer, TakeOptions, WindowReading } from "./counter-store.ts";
import { CounterBudget, CounterTable } from "./counter-table.ts";
import { ExpiringMap } from "./expiring-map.ts";
import { type Hash64, hashText } from "./hash.ts";
import { SteadyClock } from "./steady-clock.ts";
import { fits, isTaken, outcomesOf, type PlanStep, type TakePlan } from "./take-plan.ts";
import { type TakenWindow, WindowCounters } from "./window-counters.ts";

export interface MemoryCountersOptions {
  readonly clock?: Clock;
  /** How many counters are kept at most. Absent: 4 million. */
  readonly maxCounters?: number;
  /** How many bytes they may take. Absent: 256 MiB. */
  readonly maxBytes?: number;
  /** How many request ids, and how many receipts, are remembered at most. Absent: 100 000 of each. */
  readonly maxIds?: number;
}

export interface MemoryCountersStats {
  readonly counters: number;
  readonly bytes: number;
  /** Counters dropped while they still meant something, because the store was full. */
  readonly evictedLive: number;
  /** How often the clock stepped back by more than a minute. */
  readonly clockAnomalies: number;
  readonly ids: number;
  readonly receipts: number;
}

/** The outcome of a take of one window, with the moment it was decided at. */
export interface OneOutcome extends ArrivalTake {
  window: CompiledWindow | undefined;
  atMs: number;
}

const defaultIdTtlMs = 10 * 60 * 1000;

/**
 * Counters in this process's memory: the default store. Idle counters are forgotten, and since an idle counter means
 * the same as an absent one nothing is lost by it. When the store is full of counters that are not idle, the one
 * nearest to idle in a sample goes: subjects at their limit are the last to be forgotten, so a flood of new subjects
 * cannot wash a throttled one free. Every such loss is counted.
 */
export class MemoryCounters implements CounterStore {
  readonly local = true;
  readonly #clock: SteadyClock;
  readonly #budget: CounterBudget;
  readonly #windows: WindowCounters;
  /** Until when limits are blocked after a denial (`block_for`). */
  readonly #blocks: CounterTable;
  readonly #ids: ExpiringMap<{ readonly fingerprint: string | undefined; readonly answer: TakeAnswer }>;
  readonly #receipts: ExpiringMap<readonly TakenWindow[]>;
  readonly #subject: Hash64 = { lo: 0, hi: 0 };
  readonly #one: OneOutcome = {
    fits: "now",
    window: undefined,
    remaining: 0,
    retryAfterMs: 0,
    resetAfterMs: 0,
    queuePosition: 0,
    queueDelayMs: 0,
    atMs: 0,
  };
  #receiptNumber = 0;

  constructor(options: MemoryCountersOptions = {}) {
    this.#clock = new SteadyClock(options.clock ?? systemClock);
    this.#budget = new CounterBudget(options.maxCounters ?? 4_000_000, options.maxBytes ?? 256 * 1024 * 1024);
    this.#windows = new WindowCounters(this.#budget);
    this.#blocks = this.#budget.watch(new CounterTable(1, this.#budget));
    const maxIds = options.maxIds ?? 100_000;
    this.#ids = new ExpiringMap(maxIds);
    this.#receipts = new ExpiringMap(maxIds);
  }

  get stats(): MemoryCountersStats {
    return {
      counters: this.#budget.counters,
      bytes: this.#budget.bytes,
      evictedLive: this.#budget.evictedLive,
      clockAnomalies: this.#clock.anomalies,
      ids: this.#ids.size,
      receipts: this.#receipts.size,
    };
  }

  take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer {
    const nowMs = this.#clock.now();
    const id = options?.id;
    if (id !== undefined) {
      const known = this.#ids.find(id, nowMs);
      if (known !== undefined) {
        if (known.fingerprint !== options?.fingerprint) throw idempotencyConflict(id);
        return { ...known.answer, replayed: true };
      }
    }
    const plan = this.#plan(limits, nowMs);
    const receipt = this.#carryOut(limits, plan, nowMs, options?.receipt === true);
    const taken = isTaken(plan, 0);
    const answer: TakeAnswer = {
      taken,
      atMs: this.#clock.originMs + nowMs,
      outcomes: outcomesOf(limits, plan, true),
      receipt,
      replayed: false,
    };
    if (id !== undefined && taken) {
      const untilMs = nowMs + (options?.idTtlMs ?? defaultIdTtlMs);
      this.#ids.set(id, { fingerprint: options?.fingerprint, answer }, untilMs, nowMs);
    }
    return answer;
  }

  /**
   * `take` for the commonest request, a single window of the arrival kind, without the lists that several need. The
   * answer is one object used again and again: good until the next call.
   */
  takeOne(window: CompiledWindow, subject: string, cost: number): Readonly<OneOutcome> {
    const nowMs = this.#clock.now();
    hashText(subject, this.#subject);
    const one = this.#one;
    one.window = window;
    one.atMs = this.#clock.originMs + nowMs;
    this.#windows.takeArrival(window, this.#lo(window), this.#hi(window), cost, nowMs, one);
    return one;
  }

  peek(limits: readonly ResolvedLimit[]): TakeAnswer {
    const nowMs = this.#clock.now();
    const outcomes = outcomesOf(limits, this.#plan(limits, nowMs), false);
    return { taken: false, atMs: this.#clock.originMs + nowMs, outcomes, receipt: undefined, replayed: false };
  }

  give(receipt: Receipt): boolean {
    const nowMs = this.#clock.now();
    let given = false;
    for (const taken of this.#receipts.take(receipt, nowMs) ?? []) {
      if (this.#windows.give(taken, nowMs)) given = true;
    }
    return given;
  }

  charge(limits: readonly ResolvedLimit[]): void {
    const nowMs = this.#clock.now();
    for (const { subject, windows, cost } of limits) {
      hashText(subject, this.#subject);
      for (const window of windows) {
        if (!window.charges) continue;
        this.#windows.charge(window, this.#lo(window), this.#hi(window), cost, nowMs, this.#clock.originMs);
      }
    }
    this.#windows.trimLogs(nowMs);
  }

  /** Also voids every receipt that is still out: what was reset cannot be given back. */
  reset(limits: readonly ResolvedLimit[]): void {
    this.#receipts.clear();
    for (const { subject, windows, limit } of limits) {
      hashText(subject, this.#subject);
      for (const window of windows) this.#windows.forget(window, this.#lo(window), this.#hi(window));
      const blockAt = this.#findBlock(limit);
      if (blockAt >= 0) this.#blocks.delete(blockAt);
    }
  }

  read({ subject, windows, cost }: ResolvedLimit): readonly WindowReading[] {
    const nowMs = this.#clock.now();
    const { originMs } = this.#clock;
    hashText(subject, this.#subject);
    return windows.map((window) => {
      const at = this.#windows.find(window, this.#lo(window), this.#hi(window));
      const { remaining, resetAfterMs } = this.#windows.verdict(window, at, cost, nowMs, originMs);
      return { window, remaining, resetAfterMs, state: this.#windows.quantities(window, at, nowMs, originMs) };
    });
  }

  close(): void {}

  /** The hash of a window's counter for the subject that was hashed last. A zero upper half marks an empty slot. */
  #lo(window: CompiledWindow): number {
    return this.#subject.lo ^ window.hashLo;
  }

  #hi(window: CompiledWindow): number {
    return this.#subject.hi ^ window.hashHi || 1;
  }

  #findBlock(limit: CompiledLimit): number {
    return this.#blocks.find(this.#subject.lo ^ limit.blockHashLo, this.#subject.hi ^ limit.blockHashHi || 1);
  }

  #plan(limits: readonly ResolvedLimit[], nowMs: number): TakePlan {
    const steps: PlanStep[] = [];
    let refused: Set<number> | undefined;
    for (let i = 0; i < limits.length; i++) {
      const { limit, windows, subject, cost, group } = limits[i]!;
      hashText(subject, this.#subject);
      const blockedMs = limit.blockForMs === 0 ? 0 : this.#blockedMs(limit, nowMs);
      for (let w = 0; w < windows.length; w++) {
        const window = windows[w]!;
        const lo = this.#lo(window);
        const hi = this.#hi(window);
        const at = this.#windows.find(window, lo, hi);
        const verdict = this.#windows.verdict(window, at, cost, nowMs, this.#clock.originMs);
        const step: PlanStep = { limit: i, window, lo, hi, at, verdict, blockedMs, newlyBlockedMs: 0 };
        steps.push(step);
        if (!fits(step)) {
          refused ??= new Set();
          refused.add(group);
        }
      }
    }
    return { steps, refused: refused ?? nothingRefused };
  }

  #blockedMs(limit: CompiledLimit, nowMs: number): number {
    if (this.#blocks.count === 0) return 0;
    const at = this.#findBlock(limit);
    return at < 0 ? 0 : Math.max(Math.ceil(this.#blocks.numbers[at]! - nowMs), 0);
  }

  /** Takes every group that fits, and blocks what is denied where its limit says so. */
  #carryOut(
    limits: readonly ResolvedLimit[],
    plan: TakePlan,
    nowMs: number,
    wantsReceipt: boolean,
  ): Receipt | undefined {
    const taken: TakenWindow[] | undefined = wantsReceipt ? [] : undefined;
    // Placing a counter may move others: what was found before the first one is looked up again after it.
    let foundHolds = true;
    for (const step of plan.steps) {
      const { limit, group, subject, cost } = limits[step.limit]!;
      const { window, lo, hi, verdict } = step;
      if (!isTaken(plan, group)) {
        // Under a denial of what is enforced, shadow groups see nothing.
        if (limit.blockForMs > 0 && (group === 0 || !plan.refused.has(0))) this.#block(limit, subject, step, nowMs);
      } else if (window.charges) {
        const at = foundHolds ? step.at : this.#windows.find(window, lo, hi);
        if (this.#windows.take(window, lo, hi, at, verdict, cost, nowMs)) foundHolds = false;
        taken?.push({ window, lo, hi, cost, takenMs: nowMs, word0: verdict.word0 });
      }
    }
    this.#windows.trimLogs(nowMs);
    return taken === undefined || taken.length === 0 ? undefined : this.#createReceipt(taken, nowMs);
  }

  /** A block is begun by a denial that waiting would cure, and not renewed while it runs. */
  #block(limit: CompiledLimit, subject: string, step: PlanStep, nowMs: number): void {
    if (step.verdict.fits !== "later" || step.blockedMs > 0) return;
    hashText(subject, this.#subject);
    let at = this.#findBlock(limit);
    if (at < 0) {
      const { lo, hi } = this.#subject;
      at = this.#blocks.insert(lo ^ limit.blockHashLo, hi ^ limit.blockHashHi || 1, nowMs);
    }
    this.#blocks.numbers[at] = nowMs + limit.blockForMs;
    step.newlyBlockedMs = limit.blockForMs;
  }

  #createReceipt(taken: readonly TakenWindow[], nowMs: number): Receipt {
    this.#receiptNumber += 1;
    const receipt = `m${this.#receiptNumber}`;
    let untilMs = nowMs;
    for (const { word0 } of taken) untilMs = Math.max(untilMs, word0);
    this.#receipts.set(receipt, taken, untilMs, nowMs);
    return receipt;
  }
}

const nothingRefused: ReadonlySet<number> = new Set();

function idempotencyConflict(id: string): SluiceError {
  return new SluiceError(
    "idempotency_conflict",
    `request id ${JSON.stringify(id)} was already used for another request; use a new id for each different request`,
    [{ path: ["id"], message: "was already used for another request" }],
  );
}
