import type { CompiledWindow } from "sluice/store";
import { doubled } from "./subject-counts.ts";

/**
 * The most that each subject asked for in any window of one length, by the clock: from minute to minute for `100/m`.
 * Windows of buckets have no such bounds; their peaks show how much was asked for in that time, and not in what bursts.
 */
export class WindowPeaks {
  readonly window: CompiledWindow;
  #startMs = Number.NEGATIVE_INFINITY;
  #endMs = Number.NEGATIVE_INFINITY;
  /** Of each subject: the window that it was last seen in, what it has asked for there, and the most in any. */
  #starts: Float64Array = new Float64Array(0);
  #sums: Float64Array = new Float64Array(0);
  #peaks: Float64Array = new Float64Array(0);

  constructor(window: CompiledWindow) {
    this.window = window;
  }

  /** `place` is the subject's, below `capacity`. */
  add(place: number, capacity: number, cost: number, timeMs: number): void {
    while (this.#peaks.length < capacity) this.#grow(capacity);
    if (timeMs < this.#startMs || timeMs >= this.#endMs) this.#moveTo(timeMs);
    if (this.#starts[place] !== this.#startMs) {
      this.#starts[place] = this.#startMs;
      this.#sums[place] = 0;
    }
    const sum = this.#sums[place]! + cost;
    this.#sums[place] = sum;
    if (sum > this.#peaks[place]!) this.#peaks[place] = sum;
  }

  /** The peaks of the first `count` subjects, ascending. */
  sorted(count: number): Float64Array {
    return this.#peaks.slice(0, count).sort();
  }

  #moveTo(timeMs: number): void {
    const { calendar, perMs } = this.window;
    if (calendar !== undefined) ({ startMs: this.#startMs, endMs: this.#endMs } = calendar(timeMs));
    else {
      this.#startMs = Math.floor(timeMs / perMs) * perMs;
      this.#endMs = this.#startMs + perMs;
    }
  }

  #grow(capacity: number): void {
    if (this.#peaks.length === 0) {
      this.#starts = new Float64Array(capacity).fill(Number.NaN);
      this.#sums = new Float64Array(capacity);
      this.#peaks = new Float64Array(capacity);
      return;
    }
    this.#starts = doubled(this.#starts);
    this.#sums = doubled(this.#sums);
    this.#peaks = doubled(this.#peaks);
  }
}

/** The smallest value that at least this share of the values does not exceed; 0 of none. */
export function quantile(sorted: Float64Array, share: number): number {
  if (sorted.length === 0) return 0;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))]!;
}
