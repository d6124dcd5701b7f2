/** Cells of each row: 128 KB a row, whatever the number of counters. */
const cells = 65_536;
const halveEveryMs = 1000;
/** After so many halvings nothing is left. */
const mostHalvings = 16;
const largest = 65_535;

/**
 * How often counters that are not leased were asked for lately. Two rows of small counts, of which a counter has one in each by its hash and the
 * smaller is taken; all are halved every second, so that a steady rate of *r* a second shows as *r* to 2*r*. Others may share its cells: the
 * count is never too low, and a counter that is leased for it by mistake is let go of again. Once leased it does not count here.
 */
export class Heat {
  readonly #counts = new Uint16Array(2 * cells);
  #halveAtMs: number;

  constructor(nowMs: number) {
    this.#halveAtMs = nowMs + halveEveryMs;
  }

  /** Counts once more, and gives the count. */
  note(lo: number, hi: number, nowMs: number): number {
    if (nowMs >= this.#halveAtMs) this.#halve(nowMs);
    const counts = this.#counts;
    const one = lo & (cells - 1);
    const other = cells + (hi & (cells - 1));
    const count = Math.min(counts[one]!, counts[other]!) + 1;
    if (count > largest) return largest;
    // Only what is smaller than the new count is raised to it: others that share a cell are not counted twice.
    if (counts[one]! < count) counts[one] = count;
    if (counts[other]! < count) counts[other] = count;
    return count;
  }

  #halve(nowMs: number): void {
    const passed = Math.floor((nowMs - this.#halveAtMs) / halveEveryMs) + 1;
    this.#halveAtMs += passed * halveEveryMs;
    const counts = this.#counts;
    const shift = Math.min(passed, mostHalvings);
    for (let i = 0; i < counts.length; i++) counts[i] = counts[i]! >>> shift;
  }
}
