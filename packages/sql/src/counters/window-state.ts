import { randomInt } from "node:crypto";
import {
  type ArrivalRate,
  aheadMs,
  broughtBack,
  chargeArrival,
  chargeCount,
  chargeSliding,
  countEndMs,
  creditArrival,
  creditCount,
  creditSliding,
  decideLog,
  giveArrival,
  runningCount,
  SlidingLog,
  slidingStateAt,
} from "sluice/internal";
import type { CompiledWindow, CounterKind, WindowReading } from "sluice/store";
import { decideArrival, decideCount, decideSliding, type WindowVerdict } from "sluice/store";

/**
 * The counter of one window, as it stands at the instant of a transaction.
 *
 * Instants in `words` are milliseconds from that instant, and so never lose a bit of the time grid; only a log's are
 * since the epoch, where the slots that it merges entries into stand still. They are stored with the time of the
 * transaction. If that lies ahead of the clock, the clock stepped back, and no time has passed: a step neither locks
 * a subject out nor gives anything away.
 *
 * arrival [arrival] · count [end, count] · sliding [idle, current, previous] · log [window length, time, cost, time, …]
 */
export interface WindowState {
  /** A random number. Receipts of a counter that began another time are void. */
  readonly begun: number;
  /** arrival: how many milliseconds were given back since. */
  readonly givenMs: number;
  readonly words: readonly number[];
}

/** The counter that was stored; undefined if it has become idle. */
export function decodeWindow(kind: CounterKind, stored: readonly number[], nowMs: number): WindowState | undefined {
  const [begun = 0, atMs = 0, givenMs = 0, ...words] = stored;
  if (kind === "log") {
    const steppedBackMs = Math.max(atMs - nowMs, 0);
    const entries = words.map((word, i) => (i % 2 === 1 ? word - steppedBackMs : word));
    return (entries.at(-2) ?? 0) + entries[0]! > nowMs ? { begun, givenMs, words: entries } : undefined;
  }
  const passedMs = Math.max(nowMs - atMs, 0);
  const [first = 0, ...rest] = words;
  // A debt is stored as the negated instant.
  const leftMs = Math.abs(first) - passedMs;
  return leftMs > 0 ? { begun, givenMs, words: [first < 0 ? -leftMs : leftMs, ...rest] } : undefined;
}

export function encodeWindow({ begun, givenMs, words }: WindowState, nowMs: number): readonly number[] {
  return [begun, nowMs, givenMs, ...words];
}

/** How long until it is idle. */
export function idleAfterMs(kind: CounterKind, { words }: WindowState, nowMs: number): number {
  return kind === "log" ? words[0]! + (words.at(-2) ?? 0) - nowMs : Math.abs(words[0]!);
}

export function judgeWindow(
  window: CompiledWindow,
  state: WindowState | undefined,
  cost: number,
  nowMs: number,
): WindowVerdict {
  const [first = 0, second = 0, third = 0] = state?.words ?? [];
  switch (window.kind) {
    case "distinct":
      throw cannotCount();
    case "arrival":
      return decideArrival(window, first, cost, 0);
    case "count":
      return decideCount(window, first, second, cost, 0, nowMs);
    case "sliding":
      return decideSliding(window, first, second, third, cost, 0, nowMs);
    case "log":
      return decideLog(window, state && logFrom(state), cost, nowMs);
  }
}

/** Policies with such limits are refused when they are loaded: see `CounterStore.distinct`. */
function cannotCount(): Error {
  return new Error("counters in a database do not count distinct values");
}

/** Takes what a verdict found to fit. */
export function takeFrom(
  window: CompiledWindow,
  state: WindowState | undefined,
  { word0, word1, word2 }: WindowVerdict,
  cost: number,
  nowMs: number,
): WindowState {
  switch (window.kind) {
    case "distinct":
      throw cannotCount();
    case "arrival":
      return next(state, [word0]);
    case "count":
      return next(state, [word0, word1]);
    case "sliding":
      return next(state, [word0, word1, word2]);
    case "log": {
      const log = logFrom(state);
      log.settle(nowMs, window.perMs);
      log.add(nowMs, cost, window.perMs);
      return next(state, [window.perMs, ...log.list()]);
    }
  }
}

/** Corrects an arrival that the limit cannot have left behind. Undefined if nothing is wrong. */
export function bringBack(window: CompiledWindow, state: WindowState | undefined): WindowState | undefined {
  if (window.kind !== "arrival" || state === undefined) return undefined;
  const arrivalMs = broughtBack(window, state.words[0]!, 0);
  return arrivalMs === undefined ? undefined : next(state, [arrivalMs]);
}

/** Takes unconditionally, into bounded debt if it must. */
export function chargeTo(
  window: CompiledWindow,
  state: WindowState | undefined,
  cost: number,
  nowMs: number,
): WindowState {
  const [first = 0, second = 0, third = 0] = state?.words ?? [];
  switch (window.kind) {
    case "distinct":
      throw cannotCount();
    case "arrival":
      return next(state, [chargeArrival(window, first, cost, 0)]);
    case "count": {
      const running = runningCount(first, second, 0);
      const keepsEnd = running > 0 && window.perMs !== Number.POSITIVE_INFINITY;
      return next(state, [keepsEnd ? first : countEndMs(window, 0, nowMs), chargeCount(window, running, cost)]);
    }
    case "sliding": {
      const at = slidingStateAt(window, first, second, third, 0, nowMs);
      return next(state, [at.endMs + window.perMs, chargeSliding(window, at, cost), at.previous]);
    }
    case "log": {
      const log = logFrom(state);
      log.settle(nowMs, window.perMs);
      const bounded = Math.min(cost, 2 * window.capacity - log.total);
      if (bounded > 0) log.add(nowMs, bounded, window.perMs);
      return next(state, [window.perMs, ...log.list()]);
    }
  }
}

/** Gives back unconditionally. Undefined if nothing is left: receipts are void from then on. */
export function creditTo(
  window: CompiledWindow,
  state: WindowState,
  cost: number,
  nowMs: number,
): WindowState | undefined {
  const [first = 0, second = 0, third = 0] = state.words;
  switch (window.kind) {
    case "distinct":
      throw cannotCount();
    case "arrival": {
      const given = creditArrival(window, first, cost, 0);
      if (given === undefined || given.arrivalMs === 0) return undefined;
      return { ...state, givenMs: state.givenMs + given.givenMs, words: [given.arrivalMs] };
    }
    case "count": {
      // A window keeps its end, and this does not use up a one-off quota.
      const count = creditCount(runningCount(first, second, 0), cost);
      return count === 0 ? undefined : next(state, [first, count]);
    }
    case "sliding": {
      const before = slidingStateAt(window, first, second, third, 0, nowMs);
      const { current, previous } = creditSliding(window, before, cost, 0);
      return current + previous === 0 ? undefined : next(state, [before.endMs + window.perMs, current, previous]);
    }
    case "log": {
      const log = logFrom(state);
      log.settle(nowMs, window.perMs);
      log.removeNewest(cost);
      return log.size === 0 ? undefined : next(state, [window.perMs, ...log.list()]);
    }
  }
}

/** What a take from a window left behind, as a receipt keeps it. */
export interface TakenPart {
  readonly row: string;
  readonly window: string;
  readonly kind: CounterKind;
  readonly begun: number;
  /** What had been given back until then. */
  readonly givenMs: number;
  readonly takenMs: number;
  readonly cost: number;
  /** How far from the take its moment ends. */
  readonly lastsMs: number;
  /** What the formulas need to know of the window. */
  readonly rate: ArrivalRate;
}

/** Undoes a take. Undefined if its moment has passed, or the counter no longer holds it. */
export function giveTo(part: TakenPart, state: WindowState | undefined, nowMs: number): WindowState | undefined {
  const { kind, cost, takenMs, rate } = part;
  const endsMs = part.lastsMs - Math.max(nowMs - takenMs, 0);
  if (state === undefined || state.begun !== part.begun || endsMs <= 0) return undefined;
  const [first = 0, second = 0, third = 0] = state.words;
  switch (kind) {
    case "distinct":
      throw cannotCount();
    case "arrival": {
      const givenSinceMs = state.givenMs - part.givenMs;
      const given = giveArrival(rate, first, cost, endsMs - givenSinceMs, 0);
      return given && { ...state, givenMs: state.givenMs + given.givenMs, words: [given.arrivalMs] };
    }
    case "count":
      return second < cost ? undefined : next(state, [first, second - cost]);
    case "sliding":
      // The cost is in the current count while its window is the current one, and in the previous one after that.
      if (first === endsMs && second >= cost) return next(state, [first, second - cost, third]);
      return first === endsMs + rate.perMs && third >= cost ? next(state, [first, second, third - cost]) : undefined;
    case "log": {
      const log = logFrom(state);
      return log.remove(takenMs, cost) ? next(state, [first, ...log.list()]) : undefined;
    }
  }
}

export function readWindow(
  window: CompiledWindow,
  state: WindowState | undefined,
  cost: number,
  nowMs: number,
): WindowReading {
  const { remaining, resetAfterMs } = judgeWindow(window, state, cost, nowMs);
  return { window, remaining, resetAfterMs, state: quantities(window, state, nowMs) };
}

function quantities(window: CompiledWindow, state: WindowState | undefined, nowMs: number): Record<string, number> {
  const [first = 0, second = 0, third = 0] = state?.words ?? [];
  switch (window.kind) {
    case "distinct":
      throw cannotCount();
    case "arrival":
      return { aheadMs: aheadMs(window, first, 0) };
    case "count":
      return { count: runningCount(first, second, 0) };
    case "sliding": {
      const { current, previous, endMs } = slidingStateAt(window, first, second, third, 0, nowMs);
      return { current, previous, untilEndMs: endMs };
    }
    case "log":
      return { entries: logFrom(state).countAt(nowMs, window.perMs) };
  }
}

function next(state: WindowState | undefined, words: readonly number[]): WindowState {
  return { begun: state?.begun ?? randomInt(2 ** 48 - 1), givenMs: state?.givenMs ?? 0, words };
}

function logFrom(state: WindowState | undefined): SlidingLog {
  return SlidingLog.from(state?.words.slice(1) ?? []);
}
