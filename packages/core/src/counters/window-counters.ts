import {
  type ArrivalTake,
  chargeArrival,
  decideArrival,
  giveArrival,
  neverArrived,
  takeArrival,
} from "../algorithms/arrival.ts";
import { chargeCount, countEndMs, decideCount, runningCount } from "../algorithms/count.ts";
import { chargeSliding, decideSliding, type SlidingState, slidingStateAt } from "../algorithms/sliding.ts";
import { decideLog, SlidingLog } from "../algorithms/sliding-log.ts";
import type { WindowVerdict } from "../algorithms/window-verdict.ts";
import type { CompiledWindow, CounterKind } from "../match/compiled.ts";
import { type CounterBudget, CounterTable } from "./counter-table.ts";

/** Bytes of a log beside its entries, and of one entry: estimates that err on the large side. */
const logBytes = 128;
const logEntryBytes = 32;

/** What a window's take left behind, so that it can be undone. */
export interface TakenWindow {
  readonly window: CompiledWindow;
  readonly lo: number;
  readonly hi: number;
  readonly cost: number;
  readonly takenMs: number;
  /** The counter's first word as the take left it. */
  readonly word0: number;
}

/**
 * The counters of single windows, each kind in a table of its own. A counter is named by a hash (`lo`, `hi`); its place in
 * the table (`at`, −1 where there is none) is good until the next counter is placed or dropped.
 *
 * Words: arrival [arrival] · count [end, count] · sliding [idle, current, previous] · log [idle, index of the log].
 */
export class WindowCounters {
  readonly #budget: CounterBudget;
  readonly #arrivals: CounterTable;
  readonly #counts: CounterTable;
  readonly #slidings: CounterTable;
  readonly #logTable: CounterTable;
  readonly #logs: (SlidingLog | undefined)[] = [];
  readonly #freeLogs: number[] = [];

  constructor(budget: CounterBudget) {
    this.#budget = budget;
    this.#arrivals = budget.watch(new CounterTable(1, budget));
    this.#counts = budget.watch(new CounterTable(2, budget));
    this.#slidings = budget.watch(new CounterTable(3, budget));
    this.#logTable = budget.watch(new CounterTable(2, budget, (numbers, at) => this.#forgetLog(numbers[at + 1]!)));
  }

  find(window: CompiledWindow, lo: number, hi: number): number {
    return this.#tableOf(window.kind).find(lo, hi);
  }

  /** How the window stands to a cost. Changes nothing. */
  verdict(window: CompiledWindow, at: number, cost: number, nowMs: number, originMs: number): WindowVerdict {
    const absent = at < 0;
    const { numbers } = this.#tableOf(window.kind);
    switch (window.kind) {
      case "arrival":
        return decideArrival(window, absent ? neverArrived : numbers[at]!, cost, nowMs);
      case "count":
        return absent
          ? decideCount(window, 0, 0, cost, nowMs, originMs)
          : decideCount(window, numbers[at]!, numbers[at + 1]!, cost, nowMs, originMs);
      case "sliding":
        return absent
          ? decideSliding(window, 0, 0, 0, cost, nowMs, originMs)
          : decideSliding(window, numbers[at]!, numbers[at + 1]!, numbers[at + 2]!, cost, nowMs, originMs);
      case "log":
        return decideLog(window, absent ? undefined : this.#logs[numbers[at + 1]!], cost, nowMs);
    }
  }

  /** Takes what a verdict found to fit. True where a counter was placed, and what was found before no longer holds. */
  take(
    window: CompiledWindow,
    lo: number,
    hi: number,
    foundAt: number,
    verdict: WindowVerdict,
    cost: number,
    nowMs: number,
  ): boolean {
    const table = this.#tableOf(window.kind);
    const at = foundAt >= 0 ? foundAt : this.#place(window.kind, lo, hi, nowMs);
    const { numbers } = table;
    numbers[at] = verdict.word0;
    if (window.kind === "count" || window.kind === "sliding") numbers[at + 1] = verdict.word1;
    if (window.kind === "sliding") numbers[at + 2] = verdict.word2;
    if (window.kind === "log") this.#addToLog(numbers[at + 1]!, nowMs, cost, window.perMs);
    return foundAt < 0;
  }

  /** Decides and takes a window of the arrival kind in one go. */
  takeArrival(window: CompiledWindow, lo: number, hi: number, cost: number, nowMs: number, into: ArrivalTake): void {
    const table = this.#arrivals;
    let at = table.find(lo, hi);
    const arrivalMs = takeArrival(window, at < 0 ? neverArrived : table.numbers[at]!, cost, nowMs, into);
    if (arrivalMs === undefined) return;
    if (at < 0) at = table.insert(lo, hi, nowMs);
    table.numbers[at] = arrivalMs;
  }

  /** Takes unconditionally, into bounded debt where it must. */
  charge(window: CompiledWindow, lo: number, hi: number, cost: number, nowMs: number, originMs: number): void {
    const table = this.#tableOf(window.kind);
    let at = table.find(lo, hi);
    const fresh = at < 0;
    if (fresh) at = this.#place(window.kind, lo, hi, nowMs);
    const { numbers } = table;
    switch (window.kind) {
      case "arrival":
        numbers[at] = chargeArrival(window, fresh ? neverArrived : numbers[at]!, cost, nowMs);
        return;
      case "count": {
        const running = fresh ? 0 : this.#countAt(window, at, nowMs, originMs);
        numbers[at] = countEndMs(window, nowMs, originMs);
        numbers[at + 1] = chargeCount(window, running, cost);
        return;
      }
      case "sliding": {
        const state = this.#slidingAt(window, fresh ? -1 : at, nowMs, originMs);
        numbers[at] = state.endMs + window.perMs;
        numbers[at + 1] = chargeSliding(window, state, cost);
        numbers[at + 2] = state.previous;
        return;
      }
      case "log": {
        const log = this.#logs[numbers[at + 1]!]!;
        log.settle(nowMs, window.perMs);
        const bounded = Math.min(cost, Math.max(2 * window.capacity - log.total, 0));
        numbers[at] = nowMs + window.perMs;
        if (bounded > 0) this.#addToLog(numbers[at + 1]!, nowMs, bounded, window.perMs);
        return;
      }
    }
  }

  /** Undoes a take. False where its moment has passed, or the counter is no longer the one it was taken from. */
  give({ window, lo, hi, cost, takenMs, word0 }: TakenWindow, nowMs: number): boolean {
    const table = this.#tableOf(window.kind);
    const at = table.find(lo, hi);
    if (at < 0 || nowMs >= word0) return false;
    const { numbers } = table;
    switch (window.kind) {
      case "arrival": {
        const arrivalMs = giveArrival(window, numbers[at]!, cost, word0, nowMs);
        if (arrivalMs === undefined) return false;
        numbers[at] = arrivalMs;
        return true;
      }
      case "count": {
        const once = window.perMs === Number.POSITIVE_INFINITY;
        if ((!once && numbers[at] !== word0) || numbers[at + 1]! < cost) return false;
        numbers[at + 1]! -= cost;
        return true;
      }
      case "sliding": {
        // The cost is in the current count while its window is the current one, and in the previous one after that.
        const word = numbers[at] === word0 ? at + 1 : numbers[at] === word0 + window.perMs ? at + 2 : -1;
        if (word < 0 || numbers[word]! < cost) return false;
        numbers[word]! -= cost;
        return true;
      }
      case "log": {
        const log = this.#logs[numbers[at + 1]!]!;
        const before = log.size;
        const removed = log.remove(takenMs, cost);
        this.#budget.bytes += (log.size - before) * logEntryBytes;
        return removed;
      }
    }
  }

  forget(window: CompiledWindow, lo: number, hi: number): void {
    const table = this.#tableOf(window.kind);
    const at = table.find(lo, hi);
    if (at >= 0) table.delete(at);
  }

  /** A counter's own quantities, by name. */
  quantities(window: CompiledWindow, at: number, nowMs: number, originMs: number): Record<string, number> {
    switch (window.kind) {
      case "arrival":
        return { aheadMs: at < 0 ? 0 : Math.max(Math.abs(this.#arrivals.numbers[at]!) - nowMs, 0) };
      case "count":
        return { count: at < 0 ? 0 : this.#countAt(window, at, nowMs, originMs) };
      case "sliding": {
        const { current, previous, endMs } = this.#slidingAt(window, at, nowMs, originMs);
        return { current, previous, untilEndMs: endMs - nowMs };
      }
      case "log": {
        const log = at < 0 ? undefined : this.#logs[this.#logTable.numbers[at + 1]!];
        return { entries: log?.size ?? 0 };
      }
    }
  }

  /** Logs are the only counters that grow in place: where they outgrow the bound, some of them go. */
  trimLogs(nowMs: number): void {
    const budget = this.#budget;
    for (let dropped = 0; dropped < 4 && budget.bytes > budget.maxBytes && this.#logTable.count > 1; dropped++) {
      this.#logTable.evictSoonestIdle(nowMs);
    }
  }

  #tableOf(kind: CounterKind): CounterTable {
    switch (kind) {
      case "arrival":
        return this.#arrivals;
      case "count":
        return this.#counts;
      case "sliding":
        return this.#slidings;
      case "log":
        return this.#logTable;
    }
  }

  #place(kind: CounterKind, lo: number, hi: number, nowMs: number): number {
    const table = this.#tableOf(kind);
    const at = table.insert(lo, hi, nowMs);
    if (kind === "log") table.numbers[at + 1] = this.#createLog();
    return at;
  }

  #countAt(window: CompiledWindow, at: number, nowMs: number, originMs: number): number {
    const { numbers } = this.#counts;
    return runningCount(window, numbers[at]!, numbers[at + 1]!, nowMs, countEndMs(window, nowMs, originMs));
  }

  #slidingAt(window: CompiledWindow, at: number, nowMs: number, originMs: number): SlidingState {
    const { numbers } = this.#slidings;
    return at < 0
      ? slidingStateAt(window, 0, 0, 0, nowMs, originMs)
      : slidingStateAt(window, numbers[at]!, numbers[at + 1]!, numbers[at + 2]!, nowMs, originMs);
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

  #forgetLog(index: number): void {
    const log = this.#logs[index];
    if (log === undefined) return;
    this.#budget.bytes -= logBytes + log.size * logEntryBytes;
    this.#logs[index] = undefined;
    this.#freeLogs.push(index);
  }
}
