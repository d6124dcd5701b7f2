/** Cells of each row: 256 KB a row, however many counters there are. */
const cells = 131_072;
/** After this many halvings nothing is left. */
const mostHalvings = 16;
const largest = 65_535;
/** The least number of asks within one to two halvings for a counter to be hot, at any rate. */
const enough = 4;
const shortestMs = 1000;
const longestMs = 32_000;

/**
 * How often counters that are not leased were asked for lately. Two rows of small counts; a counter's hash gives it one
 * in each, and the smaller counts. All are halved from time to time: every second if hot means often, more rarely
 * otherwise. Counters share cells, so an average cell's count is subtracted: a flood of subjects that come once each
 * makes hardly any of them seem hot. Leased counters do not count here.
 */
export class Heat {
  readonly #halveEveryMs: number;
  readonly #counts = new Uint16Array(2 * cells);
  /** Over all cells. */
  #sum = 0;
  #halveAtMs: number;

  /** `hotPerSecond` is the rate that counts as hot. */
  constructor(hotPerSecond: number, nowMs: number) {
    this.#halveEveryMs = Math.min(Math.max((enough / 2 / hotPerSecond) * 1000, shortestMs), longestMs);
    this.#halveAtMs = nowMs + this.#halveEveryMs;
  }

  /**
   * Counts one more, and returns the rate per second: between half and all of a steady rate. 0 if it is too low to say,
   * or too low compared with the others.
   */
  note(lo: number, hi: number, nowMs: number): number {
    if (nowMs >= this.#halveAtMs) this.#halve(nowMs);
    const counts = this.#counts;
    const one = lo & (cells - 1);
    const other = cells + (hi & (cells - 1));
    const count = Math.min(counts[one]!, counts[other]!, largest - 1) + 1;
    // Only cells below the new count are raised to it: others that share a cell are not counted twice.
    if (counts[one]! < count) this.#raise(one, count);
    if (counts[other]! < count) this.#raise(other, count);
    const own = count - Math.floor(this.#sum / counts.length);
    return own < enough ? 0 : (own * 500) / this.#halveEveryMs;
  }

  #raise(cell: number, count: number): void {
    this.#sum += count - this.#counts[cell]!;
    this.#counts[cell] = count;
  }

  #halve(nowMs: number): void {
    const passed = Math.floor((nowMs - this.#halveAtMs) / this.#halveEveryMs) + 1;
    this.#halveAtMs += passed * this.#halveEveryMs;
    const counts = this.#counts;
    const shift = Math.min(passed, mostHalvings);
    let sum = 0;
    for (let i = 0; i < counts.length; i++) {
      // Rounded up, or a counter just at the hot rate would never seem so. Only above 1, or cells would never be empty.
      const count = counts[i]!;
      const halved = (shift === 1 && count > 1 ? count + 1 : count) >>> shift;
      counts[i] = halved;
      sum += halved;
    }
    this.#sum = sum;
  }
}
