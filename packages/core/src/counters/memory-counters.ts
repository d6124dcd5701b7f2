import {
  type ArrivalTake,
  chargeArrival,
  decideArrival,
  giveArrival,
  neverArrived,
  takeArrival,
} from "../algorithms/arrival.ts";
import { chargeCount, countEndMs, decideCount, runningCount } from "../algorithms/count.ts";
import { chargeSliding, decideSliding, slidingStateAt } from "../algorithms/sliding.ts";
import { decideLog, SlidingLog } from "../algorithms/sliding-log.ts";
import { floorToGrid } from "../algorithms/time-grid.ts";
import type { WindowVerdict } from "../algorithms/window-verdict.ts";
import { type Clock, systemClock } from "../clock.ts";
import { SluiceError } from "../errors.ts";
import type { CompiledWindow, CounterKind } from "../match/compiled.ts";
import type {
  CounterStore,
  LimitOutcome,
  Receipt,
  ResolvedLimit,
  TakeAnswer,
  TakeOptions,
  WindowReading,
} from "./counter-store.ts";
import { CounterBudget, CounterTable } from "./counter-table.ts";
import { ExpiringMap } from "./expiring-map.ts";
import { type Hash64, hashText } from "./hash.ts";
import { limitsMore } from "./limiting-window.ts";

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

/** One window's charge, so that it can be undone. */
interface ReceiptPart {
  readonly window: CompiledWindow;
  readonly lo: number;
  readonly hi: number;
  readonly cost: number;
  readonly takenMs: number;
  /** The counter's first word as the take left it. */
  readonly word0: number;
}

const defaultIdTtlMs = 10 * 60 * 1000;
/** Bytes of a log beside its entries, and of one entry: estimates that err on the large side. */
const logBytes = 128;
const logEntryBytes = 32;

/**
 * Counters in this process's memory: the default store. Idle counters are forgotten, and since an idle counter means
 * the same as an absent one nothing is lost by it. When the store is full of counters that are not idle, the one
 * nearest to idle in a sample goes: subjects at their limit are the last to be forgotten, so a flood of new subjects
 * cannot wash a throttled one free. Every such loss is counted.
 */
export class MemoryCounters implements CounterStore {
  readonly local = true;
  readonly #clock: Clock;
  readonly #budget: CounterBudget;
  readonly #tables: Readonly<Record<CounterKind | "block", CounterTable>>;
  readonly #arrivals: CounterTable;
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
  readonly #logs: (SlidingLog | undefined)[] = [];
  readonly #freeLogs: number[] = [];
  readonly #ids: ExpiringMap<{ readonly fingerprint: string | undefined; readonly answer: TakeAnswer }>;
  readonly #receipts: ExpiringMap<{ readonly parts: readonly ReceiptPart[]; readonly resets: number }>;
  readonly #subjectHash: Hash64 = { lo: 0, hi: 0 };
  #receiptNumber = 0;
  /** How often counters were reset; a receipt from before a reset is void. */
  #resets = 0;
  #clockAnomalies = 0;
  /** Added to the clock's reading, so that a clock that steps back goes on from where it was. */
  #steadyingMs = 0;
  #lastNowMs = 0;
  /** Epoch milliseconds of instant 0, whole; follows the wall clock when that is moved. */
  #originMs: number;
  #anchoredMs: number;

  constructor(options: MemoryCountersOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#budget = new CounterBudget(options.maxCounters ?? 4_000_000, options.maxBytes ?? 256 * 1024 * 1024);
    const table = (words: number, onDrop?: (words: Float64Array, at: number) => void): CounterTable =>
      this.#budget.watch(new CounterTable(words, this.#budget, onDrop));
    this.#tables = {
      arrival: table(1),
      count: table(2),
      sliding: table(3),
      log: table(2, (words, at) => this.#dropLog(words[at + 1]!)),
      block: table(1),
    };
    this.#arrivals = this.#tables.arrival;
    const maxIds = options.maxIds ?? 100_000;
    this.#ids = new ExpiringMap(maxIds);
    this.#receipts = new ExpiringMap(maxIds);
    this.#lastNowMs = floorToGrid(this.#clock.nowMs());
    this.#anchoredMs = this.#lastNowMs;
    this.#originMs = Math.round(this.#clock.epochMs() - this.#lastNowMs);
  }

  get stats(): MemoryCountersStats {
    return {
      counters: this.#budget.counters,
      bytes: this.#budget.bytes,
      evictedLive: this.#budget.evictedLive,
      clockAnomalies: this.#clockAnomalies,
      ids: this.#ids.size,
      receipts: this.#receipts.size,
    };
  }

  take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer {
    const nowMs = this.#now();
    const id = options?.id;
    if (id !== undefined) {
      const known = this.#ids.find(id, nowMs);
      if (known !== undefined) {
        if (known.fingerprint !== options?.fingerprint) throw idempotencyConflict(id);
        return { ...known.answer, replayed: true };
      }
    }
    const plan = this.#decide(limits, nowMs);
    const receipt = this.#commit(limits, plan, nowMs, options?.receipt === true);
    this.#trimLogs(nowMs);
    const answer: TakeAnswer = {
      taken: plan.taken,
      atMs: this.#originMs + nowMs,
      outcomes: outcomesOf(limits, plan, true),
      receipt,
      replayed: false,
    };
    if (id !== undefined && plan.taken) {
      this.#ids.set(
        id,
        { fingerprint: options?.fingerprint, answer },
        nowMs + (options?.idTtlMs ?? defaultIdTtlMs),
        nowMs,
      );
    }
    return answer;
  }

  /**
   * `take` for the commonest request, a single window of the arrival kind, without the lists that several need. The
   * answer is one object used again and again: good until the next call.
   */
  takeOne(window: CompiledWindow, subject: string, cost: number): Readonly<OneOutcome> {
    const nowMs = this.#now();
    hashText(subject, this.#subjectHash);
    const lo = this.#subjectHash.lo ^ window.hashLo;
    const hi = this.#subjectHash.hi ^ window.hashHi || 1;
    const table = this.#arrivals;
    let at = table.find(lo, hi);
    const one = this.#one;
    one.window = window;
    one.atMs = this.#originMs + nowMs;
    const arrivalMs = takeArrival(window, at < 0 ? neverArrived : table.numbers[at]!, cost, nowMs, one);
    if (arrivalMs !== undefined) {
      if (at < 0) at = table.insert(lo, hi, nowMs);
      table.numbers[at] = arrivalMs;
    }
    return one;
  }

  peek(limits: readonly ResolvedLimit[]): TakeAnswer {
    const nowMs = this.#now();
    const plan = this.#decide(limits, nowMs);
    const atMs = this.#originMs + nowMs;
    return { taken: false, atMs, outcomes: outcomesOf(limits, plan, false), receipt: undefined, replayed: false };
  }

  give(receipt: Receipt): boolean {
    const nowMs = this.#now();
    const known = this.#receipts.take(receipt, nowMs);
    if (known === undefined || known.resets !== this.#resets) return false;
    let given = false;
    for (const part of known.parts) if (this.#giveBack(part, nowMs)) given = true;
    return given;
  }

  charge(limits: readonly ResolvedLimit[]): void {
    const nowMs = this.#now();
    for (const limit of limits) {
      hashText(limit.subject, this.#subjectHash);
      const { lo, hi } = this.#subjectHash;
      for (const window of limit.windows) {
        if (window.charges) this.#chargeWindow(window, lo ^ window.hashLo, hi ^ window.hashHi || 1, limit.cost, nowMs);
      }
    }
    this.#trimLogs(nowMs);
  }

  reset(limits: readonly ResolvedLimit[]): void {
    this.#resets += 1;
    for (const limit of limits) {
      hashText(limit.subject, this.#subjectHash);
      const { lo, hi } = this.#subjectHash;
      for (const window of limit.windows) {
        const table = this.#tables[window.kind];
        const at = table.find(lo ^ window.hashLo, hi ^ window.hashHi || 1);
        if (at >= 0) table.delete(at);
      }
      const blockAt = this.#tables.block.find(lo ^ limit.limit.blockHashLo, hi ^ limit.limit.blockHashHi || 1);
      if (blockAt >= 0) this.#tables.block.delete(blockAt);
    }
  }

  read(limit: ResolvedLimit): readonly WindowReading[] {
    const nowMs = this.#now();
    hashText(limit.subject, this.#subjectHash);
    const { lo, hi } = this.#subjectHash;
    return limit.windows.map((window) => {
      const at = this.#tables[window.kind].find(lo ^ window.hashLo, hi ^ window.hashHi || 1);
      const verdict = this.#verdict(window, at, Math.min(limit.cost, window.capacity), nowMs);
      return {
        window,
        remaining: verdict.remaining,
        resetAfterMs: verdict.resetAfterMs,
        state: this.#stateOf(window, at, nowMs),
      };
    });
  }

  close(): void {}

  /**
   * The instant decisions are made at: on the time grid, and never earlier than the last one. Once a second the wall
   * clock is looked at again; windows that are aligned to it follow when it was moved.
   */
  #now(): number {
    let nowMs = floorToGrid(this.#clock.nowMs() + this.#steadyingMs);
    if (nowMs < this.#lastNowMs) {
      const backMs = this.#lastNowMs - nowMs;
      if (backMs > 60_000) this.#clockAnomalies += 1;
      this.#steadyingMs += backMs;
      nowMs = this.#lastNowMs;
    }
    this.#lastNowMs = nowMs;
    if (nowMs - this.#anchoredMs >= 1000) {
      this.#anchoredMs = nowMs;
      const originMs = Math.round(this.#clock.epochMs() - nowMs);
      if (Math.abs(originMs - this.#originMs) > 50) this.#originMs = originMs;
    }
    return nowMs;
  }

  #decide(limits: readonly ResolvedLimit[], nowMs: number): Plan {
    const steps: Step[] = [];
    let taken = true;
    for (let i = 0; i < limits.length; i++) {
      const resolved = limits[i]!;
      hashText(resolved.subject, this.#subjectHash);
      const subjectLo = this.#subjectHash.lo;
      const subjectHi = this.#subjectHash.hi;
      let blockedMs = 0;
      if (resolved.limit.blockForMs > 0) {
        blockedMs = this.#blockedMs(
          subjectLo ^ resolved.limit.blockHashLo,
          subjectHi ^ resolved.limit.blockHashHi || 1,
          nowMs,
        );
      }
      const { windows } = resolved;
      for (let w = 0; w < windows.length; w++) {
        const window = windows[w]!;
        const lo = subjectLo ^ window.hashLo;
        // A hash whose upper half is 0 marks an empty slot.
        const hi = subjectHi ^ window.hashHi || 1;
        const at = this.#tables[window.kind].find(lo, hi);
        const verdict = this.#verdict(window, at, resolved.cost, nowMs);
        const fits = verdict.fits === "now" && blockedMs === 0;
        if (!fits && resolved.group === 0) taken = false;
        steps.push({ limit: i, window, lo, hi, at, verdict, blockedMs, fits });
      }
    }
    return { steps, taken };
  }

  #blockedMs(lo: number, hi: number, nowMs: number): number {
    const { block } = this.#tables;
    if (block.count === 0) return 0;
    const at = block.find(lo, hi);
    return at < 0 ? 0 : Math.max(Math.ceil(block.numbers[at]! - nowMs), 0);
  }

  #verdict(window: CompiledWindow, at: number, cost: number, nowMs: number): WindowVerdict {
    const absent = at < 0;
    const { numbers } = this.#tables[window.kind];
    switch (window.kind) {
      case "arrival":
        return decideArrival(window, absent ? neverArrived : numbers[at]!, cost, nowMs);
      case "count":
        return absent
          ? decideCount(window, 0, 0, cost, nowMs, this.#originMs)
          : decideCount(window, numbers[at]!, numbers[at + 1]!, cost, nowMs, this.#originMs);
      case "sliding":
        return absent
          ? decideSliding(window, 0, 0, 0, cost, nowMs, this.#originMs)
          : decideSliding(window, numbers[at]!, numbers[at + 1]!, numbers[at + 2]!, cost, nowMs, this.#originMs);
      case "log":
        return decideLog(window, absent ? undefined : this.#logs[numbers[at + 1]!], cost, nowMs);
    }
  }

  #commit(limits: readonly ResolvedLimit[], plan: Plan, nowMs: number, wantsReceipt: boolean): Receipt | undefined {
    const { steps } = plan;
    if (!plan.taken) {
      this.#punish(limits, plan, nowMs);
      return undefined;
    }
    const parts: ReceiptPart[] | undefined = wantsReceipt ? [] : undefined;
    // Placing a counter may move others: what was found before the first insertion is looked up again after it.
    let foundHolds = true;
    for (let i = 0; i < steps.length; i++) {
      const step = steps[i]!;
      const resolved = limits[step.limit]!;
      if (!step.window.charges || (resolved.group !== 0 && !groupFits(limits, plan, resolved.group))) continue;
      const table = this.#tables[step.window.kind];
      let at = foundHolds ? step.at : table.find(step.lo, step.hi);
      if (at < 0) {
        at = table.insert(step.lo, step.hi, nowMs);
        foundHolds = false;
        if (step.window.kind === "log") table.numbers[at + 1] = this.#createLog();
      }
      this.#write(step.window, at, step.verdict, resolved.cost, nowMs);
      parts?.push({
        window: step.window,
        lo: step.lo,
        hi: step.hi,
        cost: resolved.cost,
        takenMs: nowMs,
        word0: step.verdict.word0,
      });
    }
    if (parts === undefined || parts.length === 0) return undefined;
    this.#receiptNumber += 1;
    const receipt = `m${this.#receiptNumber}`;
    let untilMs = nowMs;
    for (const part of parts) untilMs = Math.max(untilMs, part.word0);
    this.#receipts.set(receipt, { parts, resets: this.#resets }, untilMs, nowMs);
    return receipt;
  }

  #write(window: CompiledWindow, at: number, verdict: WindowVerdict, cost: number, nowMs: number): void {
    const { numbers } = this.#tables[window.kind];
    numbers[at] = verdict.word0;
    if (window.kind === "count") numbers[at + 1] = verdict.word1;
    else if (window.kind === "sliding") {
      numbers[at + 1] = verdict.word1;
      numbers[at + 2] = verdict.word2;
    } else if (window.kind === "log") this.#addToLog(numbers[at + 1]!, nowMs, cost, window.perMs);
  }

  /** A denial changes nothing, except that limits which say so block the subject for a while. */
  #punish(limits: readonly ResolvedLimit[], plan: Plan, nowMs: number): void {
    const { block } = this.#tables;
    for (const step of plan.steps) {
      const resolved = limits[step.limit]!;
      if (resolved.limit.blockForMs === 0 || resolved.group !== 0) continue;
      if (step.verdict.fits !== "later" || step.blockedMs > 0) continue;
      hashText(resolved.subject, this.#subjectHash);
      const lo = this.#subjectHash.lo ^ resolved.limit.blockHashLo;
      const hi = this.#subjectHash.hi ^ resolved.limit.blockHashHi || 1;
      let at = block.find(lo, hi);
      if (at < 0) at = block.insert(lo, hi, nowMs);
      block.numbers[at] = nowMs + resolved.limit.blockForMs;
      step.newlyBlockedMs = resolved.limit.blockForMs;
    }
  }

  #chargeWindow(window: CompiledWindow, lo: number, hi: number, cost: number, nowMs: number): void {
    const table = this.#tables[window.kind];
    let at = table.find(lo, hi);
    const fresh = at < 0;
    if (fresh) at = table.insert(lo, hi, nowMs);
    const { numbers } = table;
    switch (window.kind) {
      case "arrival":
        numbers[at] = chargeArrival(window, fresh ? neverArrived : numbers[at]!, cost, nowMs);
        return;
      case "count": {
        const endMs = countEndMs(window, nowMs, this.#originMs);
        const running = fresh ? 0 : runningCount(window, numbers[at]!, numbers[at + 1]!, nowMs, endMs);
        numbers[at] = endMs;
        numbers[at + 1] = chargeCount(window, running, cost);
        return;
      }
      case "sliding": {
        const state = fresh
          ? slidingStateAt(window, 0, 0, 0, nowMs, this.#originMs)
          : slidingStateAt(window, numbers[at]!, numbers[at + 1]!, numbers[at + 2]!, nowMs, this.#originMs);
        numbers[at] = state.endMs + window.perMs;
        numbers[at + 1] = chargeSliding(window, state, cost);
        numbers[at + 2] = state.previous;
        return;
      }
      case "log": {
        if (fresh) numbers[at + 1] = this.#createLog();
        const log = this.#logs[numbers[at + 1]!]!;
        log.settle(nowMs, window.perMs);
        const bounded = Math.min(cost, Math.max(2 * window.capacity - log.total, 0));
        numbers[at] = nowMs + window.perMs;
        this.#addToLog(numbers[at + 1]!, nowMs, bounded, window.perMs);
        return;
      }
    }
  }

  #giveBack(part: ReceiptPart, nowMs: number): boolean {
    const { window } = part;
    const table = this.#tables[window.kind];
    const at = table.find(part.lo, part.hi);
    if (at < 0 || nowMs >= part.word0) return false;
    const { numbers } = table;
    switch (window.kind) {
      case "arrival": {
        const arrivalMs = giveArrival(window, numbers[at]!, part.cost, part.word0, nowMs);
        if (arrivalMs === undefined) return false;
        numbers[at] = arrivalMs;
        return true;
      }
      case "count": {
        const once = window.perMs === Number.POSITIVE_INFINITY;
        if ((!once && numbers[at] !== part.word0) || numbers[at + 1]! < part.cost) return false;
        numbers[at + 1]! -= part.cost;
        return true;
      }
      case "sliding": {
        // The cost is in the current count while its window is the current one, and in the previous one after that.
        const word = numbers[at] === part.word0 ? at + 1 : numbers[at] === part.word0 + window.perMs ? at + 2 : -1;
        if (word < 0 || numbers[word]! < part.cost) return false;
        numbers[word]! -= part.cost;
        return true;
      }
      case "log":
        return this.#logs[numbers[at + 1]!]!.remove(part.takenMs, part.cost);
    }
  }

  #stateOf(window: CompiledWindow, at: number, nowMs: number): Record<string, number> {
    const { numbers } = this.#tables[window.kind];
    switch (window.kind) {
      case "arrival":
        return { aheadMs: at < 0 ? 0 : Math.max(Math.abs(numbers[at]!) - nowMs, 0) };
      case "count": {
        const endMs = countEndMs(window, nowMs, this.#originMs);
        return { count: at < 0 ? 0 : runningCount(window, numbers[at]!, numbers[at + 1]!, nowMs, endMs) };
      }
      case "sliding": {
        const state =
          at < 0
            ? slidingStateAt(window, 0, 0, 0, nowMs, this.#originMs)
            : slidingStateAt(window, numbers[at]!, numbers[at + 1]!, numbers[at + 2]!, nowMs, this.#originMs);
        return { current: state.current, previous: state.previous, untilEndMs: state.endMs - nowMs };
      }
      case "log": {
        const log = at < 0 ? undefined : this.#logs[numbers[at + 1]!];
        return { entries: log?.size ?? 0, total: log?.total ?? 0 };
      }
    }
  }

  #createLog(): number {
    const index = this.#freeLogs.pop() ?? this.#logs.length;
    this.#logs[index] = new SlidingLog();
    this.#budget.bytes += logBytes;
    return index;
  }

  #addToLog(index: number, nowMs: number, cost: number, perMs: number): void {
    const log = this.#logs[index]!;
    const before = log.size;
    log.settle(nowMs, perMs);
    log.add(nowMs, cost, perMs);
    this.#budget.bytes += (log.size - before) * logEntryBytes;
  }

  /** Logs are the only counters that grow in place: where they outgrow the bound, some of them go. */
  #trimLogs(nowMs: number): void {
    const { log } = this.#tables;
    for (let dropped = 0; dropped < 4 && this.#budget.bytes > this.#budget.maxBytes && log.count > 1; dropped++) {
      log.evictSoonestIdle(nowMs);
    }
  }

  #dropLog(index: number): void {
    const log = this.#logs[index];
    if (log === undefined) return;
    this.#budget.bytes -= logBytes + log.size * logEntryBytes;
    this.#logs[index] = undefined;
    this.#freeLogs.push(index);
  }
}

/** One window of one limit, looked at and not yet taken. */
interface Step {
  readonly limit: number;
  readonly window: CompiledWindow;
  readonly lo: number;
  readonly hi: number;
  readonly at: number;
  readonly verdict: WindowVerdict;
  readonly blockedMs: number;
  readonly fits: boolean;
  newlyBlockedMs?: number;
}

interface Plan {
  readonly steps: readonly Step[];
  readonly taken: boolean;
}

function groupFits(limits: readonly ResolvedLimit[], plan: Plan, group: number): boolean {
  for (const step of plan.steps) if (limits[step.limit]!.group === group && !step.fits) return false;
  return true;
}

/** Lets the window that limits most speak for each limit. */
function outcomesOf(limits: readonly ResolvedLimit[], plan: Plan, charging: boolean): LimitOutcome[] {
  const outcomes: LimitOutcome[] = [];
  const { steps } = plan;
  let next = 0;
  for (let i = 0; i < limits.length; i++) {
    let speaking = steps[next++]!;
    let blockedMs = Math.max(speaking.blockedMs, speaking.newlyBlockedMs ?? 0);
    for (; next < steps.length && steps[next]!.limit === i; next++) {
      const step = steps[next]!;
      blockedMs = Math.max(blockedMs, step.newlyBlockedMs ?? 0);
      if (limitsMore(step.window, step.verdict, speaking.window, speaking.verdict)) speaking = step;
    }
    const { verdict, window } = speaking;
    const { group } = limits[i]!;
    const charged = charging && plan.taken && (group === 0 || groupFits(limits, plan, group));
    outcomes.push({
      fits: verdict.fits === "never" ? "never" : speaking.blockedMs > 0 ? "blocked" : verdict.fits,
      window,
      remaining: charged ? verdict.remainingAfter : verdict.remaining,
      retryAfterMs: verdict.fits === "never" ? verdict.retryAfterMs : Math.max(verdict.retryAfterMs, blockedMs),
      resetAfterMs: charged ? verdict.resetAfterTakeMs : verdict.resetAfterMs,
      queuePosition: verdict.queuePosition,
      queueDelayMs: verdict.queueDelayMs,
    });
  }
  return outcomes;
}

function idempotencyConflict(id: string): SluiceError {
  return new SluiceError(
    "idempotency_conflict",
    `request id ${JSON.stringify(id)} was already used for another request; use a new id for each different request`,
    [{ path: ["id"], message: "was already used for another request" }],
  );
}
