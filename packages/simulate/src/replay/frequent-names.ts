/** A name, and how often it came: at least `count - error` times, and at most `count` times. */
export interface FrequentName {
  readonly name: string;
  readonly count: number;
  readonly error: number;
}

/**
 * The most frequent names of a stream, in a fixed number of places (Space-Saving): a name without a place takes that of
 * the least frequent one, and inherits its count as its error. Every name that makes up more than one part in `places`
 * of the stream is among them.
 */
export class FrequentNames {
  readonly #places: number;
  readonly #counts: Map<string, { count: number; readonly error: number }> = new Map();

  constructor(places: number) {
    this.#places = places;
  }

  add(name: string): void {
    const known = this.#counts.get(name);
    if (known !== undefined) {
      known.count += 1;
      return;
    }
    if (this.#counts.size < this.#places) {
      this.#counts.set(name, { count: 1, error: 0 });
      return;
    }
    let least = Number.POSITIVE_INFINITY;
    let leastName = "";
    for (const [other, { count }] of this.#counts) {
      if (count >= least) continue;
      least = count;
      leastName = other;
      if (least === 1) break;
    }
    this.#counts.delete(leastName);
    this.#counts.set(name, { count: least + 1, error: least });
  }

  /** The most frequent first. */
  list(): readonly FrequentName[] {
    return [...this.#counts]
      .map(([name, { count, error }]) => ({ name, count, error }))
      .sort((one, other) => other.count - one.count);
  }
}
