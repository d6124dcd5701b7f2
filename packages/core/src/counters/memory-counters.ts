import type { ArrivalTake } from "../algorithms/arrival.ts";
import { type Clock, systemClock } from "../clock.ts";
import { SluiceError } from "../errors.ts";
import type { CompiledLimit, CompiledWindow } from "../match/compiled.ts";
import type { CounterStore, Receipt, ResolvedLimit, TakeAnswer, TakeOptions, WindowReading } from "./counter-store.ts";
import { CounterBudget, CounterTable } from "./counter-table.ts";
import { ExpiringMap } from "./expiring-map.ts";
import { type Hash64, hashText } from "./hash.ts";
import { Receipts, type TakenWindow } from "./receipts.ts";
import { SteadyClock } from "./steady-clock.ts";
import { fits, isTaken, type LookedAt, outcomesOf, type TakePlan } from "./take-plan.ts";
import { WindowCounters } from "./window-counters.ts";

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
  /** How often the clock stepped back, or the wall clock either way, by more than a minute. */
  readonly clockAnomalies: number;
  readonly ids: number;
  /** Request ids forgotten before their time, because too many were remembered. */
  readonly idsCutShort: number;
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
 * the same as an absent one nothing is lost by it. When the store is full, idle counters go first; where none is to be
 * found, the one of a sample that has used least of its limit. Subjects at their limit are the last to be forgotten, so a
 * flood of new ones does not wash them free. Every counter that was lost while it meant something is counted.
 */
export class MemoryCounters implements CounterStore {
  readonly local = true;
  readonly #clock: SteadyClock;
  readonly #budget: CounterBudget;
  readonly #windows: WindowCounters;
  /** Until when limits are blocked, by a denial (`block_for`) or by `block`. */
  readonly #blocks: CounterTable;
  readonly #ids: ExpiringMap<Remembered>;
  readonly #receipts: Receipts;
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

  constructor(options: MemoryCountersOptions = {}) {
    this.#clock = new SteadyClock(options.clock ?? systemClock);
    this.#budget = new CounterBudget(options.maxCounters ?? 4_000_000, options.maxBytes ?? 256 * 1024 * 1024);
    this.#windows = new WindowCounters(this.#budget);
    this.#blocks = this.#budget.watch(new CounterTable(1, this.#budget));
    const maxIds = options.maxIds ?? 100_000;
    this.#ids = new ExpiringMap(maxIds);
    this.#receipts = new Receipts(maxIds);
  }

  get stats(): MemoryCountersStats {
    return {
      counters: this.#budget.counters,
      bytes: this.#budget.bytes,
      evictedLive: this.#budget.evictedLive,
      clockAnomalies: this.#clock.anomalies,
      ids: this.#ids.size,
      idsCutShort: this.#ids.cutShort,
      receipts: this.#receipts.size,
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
    const plan = this.#plan(limits, nowMs);
    const windows: TakenWindow[] | undefined = options?.receipt === true ? [] : undefined;
    this.#carryOut(limits, plan, nowMs, windows);
    const taken = isTaken(plan, 0);
    const answer: TakeAnswer = {
      taken,
      atMs: this.#clock.originMs + nowMs,
      outcomes: outcomesOf(limits, plan, true),
      receipt: windows === undefined || windows.length === 0 ? undefined : this.#receipts.create(windows, id, nowMs),
      replayed: false,
    };
    if (id !== undefined && taken) {
      hashText(options?.fingerprint ?? "", this.#subject);
      const { lo: fingerprintLo, hi: fingerprintHi } = this.#subject;
      this.#ids.set(id, { fingerprintLo, fingerprintHi, answer }, nowMs + (options?.idTtlMs ?? defaultIdTtlMs), nowMs);
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
    const lo = this.#lo(window);
    const hi = this.#hi(window);
    if (this.#windows.takeArrival(window, lo, hi, cost, nowMs, one)) this.#receipts.begin(window, lo, hi);
    return one;
  }

  peek(limits: readonly ResolvedLimit[]): TakeAnswer {
    const nowMs = this.#clock.now();
    const outcomes = outcomesOf(limits, this.#plan(limits, nowMs), false);
    return { taken: false, atMs: this.#clock.originMs + nowMs, outcomes, receipt: undefined, replayed: false };
  }

  give(receipt: Receipt): boolean {
    const nowMs = this.#clock.now();
    const redeemed = this.#receipts.redeem(receipt, nowMs);
    if (redeemed === undefined) return false;
    let given = false;
    for (const window of redeemed.windows) if (this.#windows.give(window, nowMs)) given = true;
    // What was given back is not taken any more: a repetition of the request is a new one.
    if (given && redeemed.id !== undefined) this.#ids.delete(redeemed.id);
    return given;
  }

  charge(limits: readonly ResolvedLimit[]): void {
    const nowMs = this.#clock.now();
    for (const { subject, windows, cost } of limits) {
      hashText(subject, this.#subject);
      for (const window of windows) {
        if (!window.charges) continue;
        const lo = this.#lo(window);
        const hi = this.#hi(window);
        if (cost < 0) this.#credit(window, lo, hi, -cost, nowMs);
        else if (this.#windows.charge(window, lo, hi, cost, nowMs, this.#clock.originMs))
          this.#receipts.begin(window, lo, hi);
      }
    }
    this.#windows.trimLogs(nowMs);
  }

  block(limits: readonly ResolvedLimit[], forMs: number): void {
    const nowMs = this.#clock.now();
    for (const { subject, limit } of limits) {
      if (!limit.blockable) continue;
      hashText(subject, this.#subject);
      this.#markBlocked(limit, nowMs + forMs, nowMs);
    }
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

  /** The hash of a window's counter for the subject that was hashed last. */
  #lo(window: CompiledWindow): number {
    return this.#subject.lo ^ window.hashLo;
  }

  #hi(window: CompiledWindow): number {
    return this.#subject.hi ^ window.hashHi || 1;
  }

  #findBlock(limit: CompiledLimit): number {
    return this.#blocks.find(this.#subject.lo ^ limit.blockHashLo, this.#subject.hi ^ limit.blockHashHi || 1);
  }

  #plan(limits: readonly ResolvedLimit[], nowMs: number): MemoryPlan {
    const steps: PlanStep[] = [];
    let refused: Set<number> | undefined;
    for (let i = 0; i < limits.length; i++) {
      const { limit, windows, subject, cost, group } = limits[i]!;
      hashText(subject, this.#subject);
      const blockedMs = limit.blockable ? this.#blockedMs(limit, nowMs) : 0;
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

  /** Takes every group that fits, noting it in `taken`, and blocks what is denied where its limit says so. */
  #carryOut(limits: readonly ResolvedLimit[], plan: MemoryPlan, nowMs: number, taken: TakenWindow[] | undefined): void {
    // Placing a counter may move others: what was found before the first one is looked up again after it.
    let foundHolds = true;
    for (const step of plan.steps) {
      const { limit, group, subject, cost } = limits[step.limit]!;
      const { window, lo, hi, verdict } = step;
      if (!isTaken(plan, group)) {
        this.#windows.bringBack(window, foundHolds ? step.at : this.#windows.find(window, lo, hi), nowMs);
        // Under a denial of what is enforced, shadow groups see nothing.
        if (limit.blockForMs > 0 && (group === 0 || !plan.refused.has(0))) {
          if (this.#block(limit, subject, step, nowMs)) foundHolds = false;
        }
      } else if (window.charges) {
        const at = foundHolds ? step.at : this.#windows.find(window, lo, hi);
        if (this.#windows.take(window, lo, hi, at, verdict, cost, nowMs)) {
          foundHolds = false;
          this.#receipts.begin(window, lo, hi);
        }
        taken?.push({ window, lo, hi, cost, takenMs: nowMs, word0: verdict.word0 });
      }
    }
    this.#windows.trimLogs(nowMs);
  }

  /** A block is begun by a denial that waiting would cure, and not renewed while it runs. True where it was placed. */
  #block(limit: CompiledLimit, subject: string, step: PlanStep, nowMs: number): boolean {
    if (step.verdict.fits !== "later" || step.blockedMs > 0) return false;
    hashText(subject, this.#subject);
    step.newlyBlockedMs = limit.blockForMs;
    return this.#markBlocked(limit, nowMs + limit.blockForMs, nowMs);
  }

  /**
   * Blocks the subject that was hashed last. An earlier block is never shortened. True where it was placed. The clock never
   * runs back here, so a block never lasts longer than it was begun for.
   */
  #markBlocked(limit: CompiledLimit, untilMs: number, nowMs: number): boolean {
    const foundAt = this.#findBlock(limit);
    const { lo, hi } = this.#subject;
    const at = foundAt >= 0 ? foundAt : this.#blocks.insert(lo ^ limit.blockHashLo, hi ^ limit.blockHashHi, nowMs);
    const { numbers } = this.#blocks;
    this.#blocks.setLeft(at, 0);
    numbers[at] = foundAt >= 0 ? Math.max(numbers[at]!, untilMs) : untilMs;
    return foundAt < 0;
  }

  #credit(window: CompiledWindow, lo: number, hi: number, cost: number, nowMs: number): void {
    const credited = this.#windows.credit(window, lo, hi, cost, nowMs, this.#clock.originMs);
    if (credited !== undefined) this.#receipts.credit(window, lo, hi, credited);
  }
}

/** A window that was looked at, and where its counter was found. */
interface PlanStep extends LookedAt {
  readonly lo: number;
  readonly hi: number;
  readonly at: number;
}

type MemoryPlan = TakePlan<PlanStep>;

/** A request id that was taken: what it is bound to, by its hash, and the answer. */
interface Remembered {
  readonly fingerprintLo: number;
  readonly fingerprintHi: number;
  readonly answer: TakeAnswer;
}

const nothingRefused: ReadonlySet<number> = new Set();

function idempotencyConflict(id: string): SluiceError {
  return new SluiceError(
    "idempotency_conflict",
    `request id ${JSON.stringify(id)} was already used for another request; use a new id for each different request`,
    [{ path: ["id"], message: "was already used for another request" }],
  );
}
