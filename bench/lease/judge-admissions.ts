/** The start and the answer of each admitted request, in microseconds of a clock that all processes share. */
export interface Admissions {
  readonly askedUs: Float64Array;
  readonly answeredUs: Float64Array;
}

/**
 * By how much the admissions exceed the allowance of a bucket of this capacity and rate, `capacity + rate × length`, in the
 * worst interval. Negative if none exceeds it.
 *
 * An admission happened somewhere between request and answer. It counts for an interval only if both lie within, so every
 * excess found here is real.
 */
export function worstOvershoot({ askedUs, answeredUs }: Admissions, capacity: number, perSecond: number): number {
  const count = askedUs.length;
  const perUs = perSecond / 1e6;
  const byQuestion = Uint32Array.from(askedUs.keys()).sort((one, other) => askedUs[one]! - askedUs[other]!);
  const places = new Uint32Array(count);
  byQuestion.forEach((index, place) => {
    places[index] = place;
  });
  const byAnswer = Uint32Array.from(answeredUs.keys()).sort((one, other) => answeredUs[one]! - answeredUs[other]!);
  // For each beginning: the admissions from there to the current end, minus the allowance for the time before the beginning.
  const beginnings = new Beginnings(Float64Array.from(byQuestion, (index) => askedUs[index]! * perUs));
  let worst = Number.NEGATIVE_INFINITY;
  for (const index of byAnswer) {
    beginnings.admit(places[index]!);
    worst = Math.max(worst, beginnings.largest - answeredUs[index]! * perUs - capacity);
  }
  return worst;
}

/**
 * A number for each place, with their maximum: a tree in which each node stores the sum added to all places below it. A place
 * counts once it was admitted: an interval begins with an admission, and not after its end.
 */
class Beginnings {
  readonly #values: Float64Array;
  readonly #leaves: number;
  /** For each node: the sum added to all places below it, and the maximum below it including that. */
  readonly #added: Float64Array;
  readonly #largest: Float64Array;

  constructor(values: Float64Array) {
    this.#values = values;
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(values.length, 1)));
    this.#added = new Float64Array(2 * this.#leaves);
    this.#largest = new Float64Array(2 * this.#leaves).fill(Number.NEGATIVE_INFINITY);
  }

  get largest(): number {
    return this.#largest[1]!;
  }

  /** Adds one to every place up to this one, and makes this one count. */
  admit(place: number): void {
    let node = place + this.#leaves;
    this.#added[node]! += 1;
    this.#largest[node] = this.#values[place]! + this.#added[node]!;
    for (; node > 1; node >>= 1) {
      // Nodes to the left on the way up lie entirely before the place.
      if (node % 2 === 1) {
        this.#added[node - 1]! += 1;
        this.#largest[node - 1]! += 1;
      }
      const above = node >> 1;
      this.#largest[above] = Math.max(this.#largest[2 * above]!, this.#largest[2 * above + 1]!) + this.#added[above]!;
    }
  }
}
