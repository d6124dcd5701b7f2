import { readFileSync } from "node:fs";

/** How old a reading may be. */
const freshMs = 10;
const nanosecondsPerMs = 1e6;

/**
 * How long this thread was ready to run but waited for a processor, according to Linux. A late timer shows only a part
 * of that: a process may get its turns, and yet wait for most of the time between them.
 */
export class RunDelay {
  readonly #read: () => string;
  #readMs = Number.NEGATIVE_INFINITY;
  #totalMs = 0;
  #isKept = true;

  constructor(read: () => string = () => readFileSync("/proc/thread-self/schedstat", "latin1")) {
    this.#read = read;
  }

  /** In milliseconds since the thread began, at most 10 ms old. Always 0 on a system that does not report it. */
  totalMs(nowMs: number): number {
    if (!this.#isKept || nowMs - this.#readMs < freshMs) return this.#totalMs;
    this.#readMs = nowMs;
    try {
      // Nanoseconds run, nanoseconds waited, and turns.
      const waited = Number(this.#read().split(" ")[1]);
      this.#isKept = Number.isFinite(waited);
      if (this.#isKept) this.#totalMs = waited / nanosecondsPerMs;
    } catch {
      this.#isKept = false;
    }
    return this.#totalMs;
  }
}
