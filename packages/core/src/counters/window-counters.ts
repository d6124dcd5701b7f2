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
import type { WindowVerdict, WritableVerdict } from "../algorithms/window-verdict.ts";
import type { CompiledWindow, CounterKind } from "../limits/compiled-limit.ts";
import type { CounterOwners } from "./counter-owners.ts";
import { type CounterBudget, CounterTable } from "./counter-table.ts";
import { DistinctCounters } from "./distinct-counters.ts";
import type { Credited, OutstandingWindow } from "./receipts.ts";

/** Bytes of a log besides its entries, and of one entry: estimates that err on the large side. */
const logBytes = 128;
const logEntryBytes = 32;

/** Where a counter came from: it existed, it was placed, or there is no room for it and nothing was taken. */
export type Placing = "found" | "placed" | "no_room";

/**
 * The counters of single windows, with a table for each kind. A counter is named by a hash (`lo`, `hi`); its place in
 * the table (`at`, −1 if it has none) is valid until the next counter is placed or dropped.
 *
 * Words: arrival [arrival] · count [end, count] · sliding [idle, current, previous] · log [idle, index of the log].
 */
export class WindowCounters {
  readonly #budget: CounterBudget;
  readonly #arrivals: CounterTable;
  readonly #counts: CounterTable;
  readonly #slidings: CounterTable;
  readonly #logTable: CounterTable;
  readonly distinct: DistinctCounters;
  readonly #logs: (SlidingLog | undefined)[] = [];
  readonly #freeLogs: number[] = [];
  #logBytes = 0;
  readonly #owners: CounterOwners;

  constructor(budget: CounterBudget, owners: CounterOwners) {
    this.#budget = budget;
    this.#owners = owners;
    this.#arrivals = budget.watch(new CounterTable(1, budget));
    this.#counts = budget.watch(new CounterTable(2, budget));
    this.#slidings = budget.watch(new CounterTable(3, budget));
    this.#logTable = budget.watch(new CounterTable(2, budget, (numbers, at) => this.#forgetLog(numbers[at + 1]!)));
    this.distinct = new DistinctCounters(budget);
  }

  /** Where arrival times are. */
  get arrivals(): CounterTable {
    return this.#arrivals;
  }

  find(window: CompiledWindow, lo: number, hi: number): number {
    return this.#findTable(window.kind).find(lo, hi);
  }

  /** How the window stands to a cost, or to what a value is worth to it. Changes nothing. Into a new verdict, or `into` one, unless the window is a log. */
  verdict(
    window: CompiledWindow,
    at: number,
    cost: number,
    nowMs: number,
    originMs: number,
    into?: WritableVerdict,
  ): WindowVerdict {
    const absent = at < 0;
    const { numbers } = this.#findTable(window.kind);
    switch (window.kind) {
      case "arrival":
        return decideArrival(window, absent ? neverArrived : numbers[at]!, cost, nowMs, into);
      case "count":
        return absent
          ? decideCount(window, 0, 0, cost, nowMs, originMs, into)
          : decideCount(window, numbers[at]!, numbers[at + 1]!, cost, nowMs, originMs, into);
      case "sliding":
        return absent
          ? decideSliding(window, 0, 0, 0, cost, nowMs, originMs, into)
          : decideSliding(window, numbers[at]!, numbers[at + 1]!, numbers[at + 2]!, cost, nowMs, originMs, into);
      case "log":
        return decideLog(window, absent ? undefined : this.#logs[numbers[at + 1]!], cost, nowMs);
      case "distinct":
        return this.distinct.verdict(window, at, cost, nowMs, originMs, into);
    }
  }

  /**
   * Makes room for a counter that was not found. Until it is taken from, it cannot be dropped. Returns −1 if there is no room
   * for it.
   */
  place(window: CompiledWindow, lo: number, hi: number, nowMs: number): number {
    const table = this.#findTable(window.kind);
    if (!this.#hasRoomFor(window.kind)) {
      this.trim(nowMs);
      if (!this.#hasRoomFor(window.kind)) {
        this.#budget.refused += 1;
        return -1;
      }
    }
    const at = table.insert(lo, hi, nowMs, this.#owners.find(window.identity, window.hashLo));
    if (at < 0) return -1;
    table.setLeft(at, 0);
    table.numbers[at] = Number.POSITIVE_INFINITY;
    if (window.kind === "log") table.numbers[at + 1] = this.#createLog();
    else if (window.kind === "distinct") table.numbers[at + 1] = this.distinct.create();
    return at;
  }

  /** Keeps a counter from being dropped, because its limit refuses its subject, or it is about to be taken from. */
  hold(window: CompiledWindow, at: number): void {
    this.#findTable(window.kind).setLeft(at, 0);
  }

  /**
   * Keeps a counter from being dropped, even if it is idle, until it is taken from. Returns its word 0, which `letGo`
   * needs if it is not.
   */
  reserve(window: CompiledWindow, at: number): number {
    this.hold(window, at);
    const { numbers } = this.#findTable(window.kind);
    const word0 = numbers[at]!;
    numbers[at] = Number.POSITIVE_INFINITY;
    return word0;
  }

  /** Undoes `hold`, or `reserve` if its `word0` is given. */
  letGo(window: CompiledWindow, lo: number, hi: number, remaining: number, word0?: number): void {
    const table = this.#findTable(window.kind);
    const at = table.find(lo, hi);
    if (at < 0) return;
    table.setLeft(at, remaining / window.capacity);
    if (word0 !== undefined) table.numbers[at] = word0;
  }

  /** Takes what a verdict found to fit, from a counter that was found or placed. */
  take(window: CompiledWindow, at: number, verdict: WindowVerdict, cost: number, nowMs: number): void {
    const table = this.#findTable(window.kind);
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
  }

  /** Decides and takes from a window of the arrival kind in one go. */
  takeArrival(window: CompiledWindow, lo: number, hi: number, cost: number, nowMs: number, into: ArrivalTake): Placing {
    const table = this.#arrivals;
    const foundAt = table.find(lo, hi);
    const arrivalMs = takeArrival(window, foundAt < 0 ? neverArrived : table.numbers[foundAt]!, cost, nowMs, into);
    if (arrivalMs === undefined) {
      if (foundAt >= 0 && into.fits === "later") table.setLeft(foundAt, 0);
      return "found";
    }
    const at = foundAt < 0 ? this.place(window, lo, hi, nowMs) : foundAt;
    if (at < 0) return "no_room";
    table.setLeft(at, into.remaining / window.capacity);
    table.numbers[at] = arrivalMs;
    return foundAt < 0 ? "placed" : "found";
  }

  /** Corrects an arrival that the limit cannot have left behind. `at` is where the counter was found. */
  bringBack(window: CompiledWindow, at: number, nowMs: number): void {
    if (window.kind !== "arrival" || at < 0) return;
    const { numbers } = this.#arrivals;
    numbers[at] = broughtBack(window, numbers[at]!, nowMs) ?? numbers[at]!;
  }

  /** Takes unconditionally, into bounded debt if it must. */
  charge(window: CompiledWindow, lo: number, hi: number, cost: number, nowMs: number, originMs: number): Placing {
    const table = this.#findTable(window.kind);
    let at = table.find(lo, hi);
    const fresh = at < 0;
    if (fresh) at = this.place(window, lo, hi, nowMs);
    if (at < 0) return "no_room";
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
        break;
      case "distinct":
        // Charged by their value: see `PlannedTakes.chargeValue`.
        break;
    }
    const { remaining } = this.verdict(window, at, 1, nowMs, originMs);
    table.setLeft(at, remaining / window.capacity);
    return fresh ? "placed" : "found";
  }

  /** Gives back unconditionally, down to idle. Undefined if there is nothing to give back. */
  credit(
    window: CompiledWindow,
    lo: number,
    hi: number,
    cost: number,
    nowMs: number,
    originMs: number,
  ): Credited | undefined {
    const table = this.#findTable(window.kind);
    const at = table.find(lo, hi);
    if (at < 0) return undefined;
    const credited = this.#creditAt(window, at, cost, nowMs, originMs);
    if (credited === undefined) return undefined;
    if (credited.emptied) table.numbers[at] = nowMs;
    const { remaining } = this.verdict(window, at, 1, nowMs, originMs);
    table.setLeft(at, remaining / window.capacity);
    return credited;
  }

  /**
   * Undoes a take. Returns how much of its cost that gave back, rounded up to whole units: 0 if its moment has passed,
   * or its counter no longer holds it.
   */
  give(outstanding: OutstandingWindow, nowMs: number, originMs: number): number {
    const { window, lo, hi, word0 } = outstanding.taken;
    const table = this.#findTable(window.kind);
    const at = table.find(lo, hi);
    if (at < 0 || nowMs >= word0) return 0;
    const given = this.#giveAt(outstanding, at, nowMs);
    if (given > 0) table.setLeft(at, this.verdict(window, at, 1, nowMs, originMs).remaining / window.capacity);
    return given;
  }

  #giveAt({ taken, givenSinceMs, noteGiven }: OutstandingWindow, at: number, nowMs: number): number {
    const { window, cost, takenMs, word0 } = taken;
    const { numbers } = this.#findTable(window.kind);
    switch (window.kind) {
      case "arrival": {
        const given = giveArrival(window, numbers[at]!, cost, word0 - givenSinceMs, nowMs);
        if (given === undefined) return 0;
        numbers[at] = given.arrivalMs;
        noteGiven(given.givenMs);
        return Math.min(cost, Math.ceil((given.givenMs * window.source.limit) / window.perMs));
      }
      case "count":
        if (numbers[at + 1]! < cost) return 0;
        numbers[at + 1]! -= cost;
        return cost;
      case "sliding": {
        // The cost is in the current count while its window is the current one, and in the previous one after that.
        const word = numbers[at] === word0 ? at + 1 : numbers[at] === word0 + window.perMs ? at + 2 : -1;
        if (word < 0 || numbers[word]! < cost) return 0;
        numbers[word]! -= cost;
        return cost;
      }
      case "log": {
        let removed = false;
        this.#changeLog(numbers[at + 1]!, (log) => {
          removed = log.remove(takenMs, cost);
        });
        return removed ? cost : 0;
      }
      case "distinct":
        return 0;
    }
  }

  forget(window: CompiledWindow, lo: number, hi: number): void {
    const table = this.#findTable(window.kind);
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
      case "distinct":
        return { values: this.distinct.count(at, nowMs) };
    }
  }

  /** Logs and distinct values are the only counters that grow in place: if they outgrow the bound, some of them go. */
  trim(nowMs: number): void {
    if (this.distinct.table.count > 1) this.distinct.trim(nowMs);
    for (let dropped = 0; dropped < 4 && !this.#hasRoomForLogs() && this.#logTable.count > 1; dropped++) {
      if (!this.#logTable.evictWithin(0, nowMs)) return;
    }
  }

  #hasRoomFor(kind: CounterKind): boolean {
    if (kind === "distinct") return this.distinct.hasRoom;
    return kind !== "log" || this.#hasRoomForLogs();
  }

  #hasRoomForLogs(): boolean {
    return this.#budget.leavesRoom(this.#logBytes);
  }

  #findTable(kind: CounterKind): CounterTable {
    switch (kind) {
      case "arrival":
        return this.#arrivals;
      case "count":
        return this.#counts;
      case "sliding":
        return this.#slidings;
      case "log":
        return this.#logTable;
      case "distinct":
        return this.distinct.table;
    }
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
    const { numbers } = this.#findTable(window.kind);
    switch (window.kind) {
      case "arrival": {
        const given = creditArrival(window, numbers[at]!, cost, nowMs);
        if (given === undefined) return undefined;
        numbers[at] = given.arrivalMs;
        return { emptied: given.arrivalMs === nowMs, givenMs: given.givenMs };
      }
      case "count": {
        // A window keeps its end, and this does not use up a one-off quota.
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
      case "distinct":
        return undefined;
    }
  }

  #createLog(): number {
    const index = this.#freeLogs.pop() ?? this.#logs.length;
    this.#logs[index] = new SlidingLog();
    this.#weigh(logBytes);
    return index;
  }

  /** Changes a log, and accounts for what it weighs. */
  #changeLog(index: number, change: (log: SlidingLog) => void): void {
    const log = this.#logs[index]!;
    const before = log.size;
    change(log);
    this.#weigh((log.size - before) * logEntryBytes);
  }

  #forgetLog(index: number): void {
    const log = this.#logs[index];
    if (log === undefined) return;
    this.#weigh(-logBytes - log.size * logEntryBytes);
    this.#logs[index] = undefined;
    this.#freeLogs.push(index);
  }

  #weigh(bytes: number): void {
    this.#logBytes += bytes;
    this.#budget.bytes += bytes;
  }
}
