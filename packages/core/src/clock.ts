/**
 * Time is passed in. Every part of core that needs the time asks a `Clock`, and only this file reads the machine's own.
 */
export interface Clock {
  /** Milliseconds since some origin, with fractions. Runs only forward on a healthy machine. */
  nowMs(): number;
  /** Wall-clock milliseconds since 1970. Aligns windows and dates headers; it may step. */
  epochMs(): number;
}

declare const performance: { now(): number };

/** Node defines the global as a getter; looking it up once saves a tenth of a check. */
const machine = performance;
const machineDate = Date;

/**
 * The machine's time, or a test's if fake timers are installed: those of Jest and vitest replace `Date` together with
 * `performance`, and comparing `Date` costs nothing.
 */
export const systemClock: Clock = {
  nowMs: () => (Date === machineDate ? machine : performance).now(),
  epochMs: () => Date.now(),
};

/** Calls `work` later, once, unless cancelled. Does not keep a process alive. */
export type CallLater = (work: () => void, inMs: number) => () => void;

declare function setTimeout(work: () => void, ms: number): unknown;
declare function clearTimeout(timer: unknown): void;

export const callLater: CallLater = (work, inMs) => {
  const timer = setTimeout(work, inMs);
  // In browsers timers are plain numbers and keep nothing alive.
  (timer as { unref?: () => void }).unref?.();
  return () => clearTimeout(timer);
};

/** A clock that stands still until it is moved: for tests, simulations and replays. */
export class ManualClock implements Clock {
  #nowMs: number;
  #epochOriginMs: number;

  constructor(epochMs = 1_700_000_000_000, nowMs = 0) {
    this.#nowMs = nowMs;
    this.#epochOriginMs = epochMs - nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  epochMs(): number {
    return this.#epochOriginMs + this.#nowMs;
  }

  /** Moves both readings, forward or back. */
  advance(ms: number): void {
    this.#nowMs += ms;
  }

  /** Moves the wall clock alone, as an NTP step does. */
  stepWall(ms: number): void {
    this.#epochOriginMs += ms;
  }
}
