/** Cells of each row: 256 KB a row, whatever the number of counters. */
const cells = 131_072;
/** After so many halvings nothing is left. */
const mostHalvings = 16;
const largest = 65_535;
/** So often a counter has to be asked for at least within the time of one halving to two, whatever the rate that is hot. */
const enough = 4;
const shortestMs = 1000;
const longestMs = 32_000;

/**
 * How often counters that are not leased were asked for lately. Two rows of small counts, of which a counter has one in each by its hash and the
 * smaller is taken. All are halved from time to time, every second where hot is often and more rarely where it is not. Others share its cells:
 * what an average cell holds is taken off, so that a flood of subjects that come once each makes hardly any of them seem hot. Once leased a
 * counter does not count here.
 */
export class Heat {
  readonly #halveEveryMs: number;
  readonly #counts = new Uint16Array(2 * cells);
  /** Of all cells. */
  #sum = 0;
  #halveAtMs: number;

  /** So many a second are hot. */
  constructor(hotPerSecond: number, nowMs: number) {
    this.#halveEveryMs = Math.min(Math.max((enough / 2 / hotPerSecond) * 1000, shortestMs), longestMs);
    this.#halveAtMs = nowMs + this.#halveEveryMs;
  }

  /**
   * Counts once more, and gives how many a second that is: of a steady rate from half of it up to all. 0 where it is too few to say, or too
   * few beside what others ask for.
   */
  note(lo: number, hi: number, nowMs: number): number {
    if (nowMs >= this.#halveAtMs) this.#halve(nowMs);
    const counts = this.#counts;
    const one = lo & (cells - 1);
    const other = cells + (hi & (cells - 1));
    const count = Math.min(counts[one]!, counts[other]!, largest - 1) + 1;
    // Only what is smaller than the new count is raised to it: others that share a cell are not counted twice.
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
      // Rounded up, or what is just as hot as it has to be would never seem so. Only above 1, or cells would never be empty.
      const count = counts[i]!;
      const halved = (shift === 1 && count > 1 ? count + 1 : count) >>> shift;
      counts[i] = halved;
      sum += halved;
    }
    this.#sum = sum;
  }
}
