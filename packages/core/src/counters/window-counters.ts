import {
  type ArrivalTake,
  aheadMs,
  broughtBack,
  chargeArrival,
  creditArrival,
  decideArrival,
  giveArrival,
  neverArrived,
  takeArrival,
} from "../algorithms/arrival.ts";
import { chargeCount, countEndMs, creditCount, decideCount, runningCount } from "../algorithms/count.ts";
import {
  chargeSliding,
  creditSliding,
  decideSliding,
  type SlidingState,
  slidingStateAt,
} from "../algorithms/sliding.ts";
import { decideLog, SlidingLog } from "../algorithms/sliding-log.ts";
import type { WindowVerdict } from "../algorithms/window-verdict.ts";
import type { CompiledWindow, CounterKind } from "../match/compiled.ts";
import { type CounterBudget, CounterTable } from "./counter-table.ts";
import type { Credited, OutstandingWindow } from "./receipts.ts";

/** Bytes of a log beside its entries, and of one entry: estimates that err on the large side. */
const logBytes = 128;
const logEntryBytes = 32;

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
    table.setLeft(at, verdict.remainingAfter / window.capacity);
    numbers[at] = verdict.word0;
    if (window.kind === "count" || window.kind === "sliding") numbers[at + 1] = verdict.word1;
    if (window.kind === "sliding") numbers[at + 2] = verdict.word2;
    if (window.kind === "log") {
      this.#changeLog(numbers[at + 1]!, (log) => {
        log.settle(nowMs, window.perMs);
        log.add(nowMs, cost, window.perMs);
      });
    }
    return foundAt < 0;
  }

  /** Decides and takes a window of the arrival kind in one go. True where a counter was placed for it. */
  takeArrival(window: CompiledWindow, lo: number, hi: number, cost: number, nowMs: number, into: ArrivalTake): boolean {
    const table = this.#arrivals;
    const foundAt = table.find(lo, hi);
    const arrivalMs = takeArrival(window, foundAt < 0 ? neverArrived : table.numbers[foundAt]!, cost, nowMs, into);
    if (arrivalMs === undefined) return false;
    const at = foundAt < 0 ? table.insert(lo, hi, nowMs) : foundAt;
    table.setLeft(at, into.remaining / window.capacity);
    table.numbers[at] = arrivalMs;
    return foundAt < 0;
  }

  /** Brings an arrival back that the limit cannot have left behind. `at` is where the counter was found. */
  bringBack(window: CompiledWindow, at: number, nowMs: number): void {
    if (window.kind !== "arrival" || at < 0) return;
    const { numbers } = this.#arrivals;
    numbers[at] = broughtBack(window, numbers[at]!, nowMs) ?? numbers[at]!;
  }

  /** Takes unconditionally, into bounded debt where it must. True where a counter was placed for it. */
  charge(window: CompiledWindow, lo: number, hi: number, cost: number, nowMs: number, originMs: number): boolean {
    const table = this.#tableOf(window.kind);
    let at = table.find(lo, hi);
    const fresh = at < 0;
    if (fresh) at = this.#place(window.kind, lo, hi, nowMs);
    const { numbers } = table;
    switch (window.kind) {
      case "arrival":
        numbers[at] = chargeArrival(window, fresh ? neverArrived : numbers[at]!, cost, nowMs);
        break;
      case "count": {
        const { running, endMs } = this.#countAt(window, fresh ? -1 : at, nowMs, originMs);
        numbers[at] = endMs;
        numbers[at + 1] = chargeCount(window, running, cost);
        break;
      }
      case "sliding": {
        const state = this.#slidingAt(window, fresh ? -1 : at, nowMs, originMs);
        numbers[at] = state.endMs + window.perMs;
        numbers[at + 1] = chargeSliding(window, state, cost);
        numbers[at + 2] = state.previous;
        break;
      }
      case "log":
        numbers[at] = nowMs + window.perMs;
        this.#changeLog(numbers[at + 1]!, (log) => {
          log.settle(nowMs, window.perMs);
          const bounded = Math.min(cost, 2 * window.capacity - log.total);
          if (bounded > 0) log.add(nowMs, bounded, window.perMs);
        });
    }
    const { remaining } = this.verdict(window, at, 1, nowMs, originMs);
    table.setLeft(at, remaining / window.capacity);
    return fresh;
  }

  /** Gives back unconditionally, down to idle. Undefined where there is nothing to give back. */
  credit(
    window: CompiledWindow,
    lo: number,
    hi: number,
    cost: number,
    nowMs: number,
    originMs: number,
  ): Credited | undefined {
    const table = this.#tableOf(window.kind);
    const at = table.find(lo, hi);
    if (at < 0) return undefined;
    const credited = this.#creditAt(window, at, cost, nowMs, originMs);
    if (credited === undefined) return undefined;
    if (credited.emptied) table.numbers[at] = nowMs;
    const { remaining } = this.verdict(window, at, 1, nowMs, originMs);
    table.setLeft(at, remaining / window.capacity);
    return credited;
  }

  /** Undoes a take. False where its moment has passed, or its counter no longer holds it. */
  give({ taken, givenSinceMs, noteGiven }: OutstandingWindow, nowMs: number): boolean {
    const { window, lo, hi, cost, takenMs, word0 } = taken;
    const table = this.#tableOf(window.kind);
    const at = table.find(lo, hi);
    if (at < 0 || nowMs >= word0) return false;
    const { numbers } = table;
    switch (window.kind) {
      case "arrival": {
        const given = giveArrival(window, numbers[at]!, cost, word0 - givenSinceMs, nowMs);
        if (given === undefined) return false;
        numbers[at] = given.arrivalMs;
        noteGiven(given.givenMs);
        return true;
      }
      case "count":
        if (numbers[at + 1]! < cost) return false;
        numbers[at + 1]! -= cost;
        return true;
      case "sliding": {
        // The cost is in the current count while its window is the current one, and in the previous one after that.
        const word = numbers[at] === word0 ? at + 1 : numbers[at] === word0 + window.perMs ? at + 2 : -1;
        if (word < 0 || numbers[word]! < cost) return false;
        numbers[word]! -= cost;
        return true;
      }
      case "log": {
        let removed = false;
        this.#changeLog(numbers[at + 1]!, (log) => {
          removed = log.remove(takenMs, cost);
        });
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
        return { aheadMs: at < 0 ? 0 : aheadMs(window, this.#arrivals.numbers[at]!, nowMs) };
      case "count":
        return { count: this.#countAt(window, at, nowMs, originMs).running };
      case "sliding": {
        const { current, previous, endMs } = this.#slidingAt(window, at, nowMs, originMs);
        return { current, previous, untilEndMs: endMs - nowMs };
      }
      case "log": {
        const log = at < 0 ? undefined : this.#logs[this.#logTable.numbers[at + 1]!];
        return { entries: log?.countAt(nowMs, window.perMs) ?? 0 };
      }
    }
  }

  /** Logs are the only counters that grow in place: where they outgrow the bound, some of them go. */
  trimLogs(nowMs: number): void {
    const budget = this.#budget;
    for (let dropped = 0; dropped < 4 && budget.bytes > budget.maxBytes && this.#logTable.count > 1; dropped++) {
      if (!this.#logTable.evictIdle(nowMs)) this.#logTable.evictLeastUsed();
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

  #countAt(
    window: CompiledWindow,
    at: number,
    nowMs: number,
    originMs: number,
  ): { readonly running: number; readonly endMs: number } {
    const { numbers } = this.#counts;
    const running = at < 0 ? 0 : runningCount(numbers[at]!, numbers[at + 1]!, nowMs);
    const keepsEnd = running > 0 && window.perMs !== Number.POSITIVE_INFINITY;
    return { running, endMs: keepsEnd ? numbers[at]! : countEndMs(window, nowMs, originMs) };
  }

  #slidingAt(window: CompiledWindow, at: number, nowMs: number, originMs: number): SlidingState {
    const { numbers } = this.#slidings;
    return at < 0
      ? slidingStateAt(window, 0, 0, 0, nowMs, originMs)
      : slidingStateAt(window, numbers[at]!, numbers[at + 1]!, numbers[at + 2]!, nowMs, originMs);
  }

  #creditAt(window: CompiledWindow, at: number, cost: number, nowMs: number, originMs: number): Credited | undefined {
    const { numbers } = this.#tableOf(window.kind);
    switch (window.kind) {
      case "arrival": {
        const given = creditArrival(window, numbers[at]!, cost, nowMs);
        if (given === undefined) return undefined;
        numbers[at] = given.arrivalMs;
        return { emptied: given.arrivalMs === nowMs, givenMs: given.givenMs };
      }
      case "count": {
        // A window keeps its end, and a one-off quota is not used by this.
        const running = runningCount(numbers[at]!, numbers[at + 1]!, nowMs);
        if (running === 0) return undefined;
        numbers[at + 1] = creditCount(running, cost);
        return { emptied: numbers[at + 1] === 0, givenMs: 0 };
      }
      case "sliding": {
        const before = this.#slidingAt(window, at, nowMs, originMs);
        if (before.current + before.previous === 0) return undefined;
        const { current, previous } = creditSliding(window, before, cost, nowMs);
        numbers[at] = before.endMs + window.perMs;
        numbers[at + 1] = current;
        numbers[at + 2] = previous;
        return { emptied: current + previous === 0, givenMs: 0 };
      }
      case "log": {
        let before = 0;
        let left = 0;
        this.#changeLog(numbers[at + 1]!, (log) => {
          log.settle(nowMs, window.perMs);
          before = log.total;
          log.removeNewest(cost);
          left = log.total;
          if (left > 0) numbers[at] = log.newestMs + window.perMs;
        });
        return before === 0 ? undefined : { emptied: left === 0, givenMs: 0 };
      }
    }
  }

  #createLog(): number {
    const index = this.#freeLogs.pop() ?? this.#logs.length;
    this.#logs[index] = new SlidingLog();
    this.#budget.bytes += logBytes;
    return index;
  }

  /** Changes a log, and accounts for what it weighs. */
  #changeLog(index: number, change: (log: SlidingLog) => void): void {
    const log = this.#logs[index]!;
    const before = log.size;
    change(log);
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
