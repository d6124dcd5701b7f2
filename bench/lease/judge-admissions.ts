/** When each request that was admitted was asked, and when its answer was there, in microseconds of a clock that all processes share. */
export interface Admissions {
  readonly askedUs: Float64Array;
  readonly answeredUs: Float64Array;
}

/**
 * By how much the admissions exceed what a bucket of this capacity and rate allows, `capacity + rate × length`, in the interval that is
 * worst, whichever it is. Below 0 where none exceeds it.
 *
 * An admission happened somewhere between question and answer. It counts for an interval only if both lie within, so that what is
 * found here was really admitted there.
 */
export function worstOvershoot({ askedUs, answeredUs }: Admissions, capacity: number, perSecond: number): number {
  const count = askedUs.length;
  const perUs = perSecond / 1e6;
  const byQuestion = Uint32Array.from(askedUs.keys()).sort((one, other) => askedUs[one]! - askedUs[other]!);
  const placeOf = new Uint32Array(count);
  byQuestion.forEach((index, place) => {
    placeOf[index] = place;
  });
  const byAnswer = Uint32Array.from(answeredUs.keys()).sort((one, other) => answeredUs[one]! - answeredUs[other]!);
  // For each beginning: what was admitted from there to the end that is being looked at, less what may be by the beginning's time.
  const beginnings = new Beginnings(Float64Array.from(byQuestion, (index) => askedUs[index]! * perUs));
  let worst = Number.NEGATIVE_INFINITY;
  for (const index of byAnswer) {
    beginnings.admit(placeOf[index]!);
    worst = Math.max(worst, beginnings.largest - answeredUs[index]! * perUs - capacity);
  }
  return worst;
}

/**
 * A number for each place, of which the largest is known: a tree, in which each node has what was added to all below it. A place
 * counts from when it was admitted: an interval begins with an admission, and not after its end.
 */
class Beginnings {
  readonly #values: Float64Array;
  readonly #leaves: number;
  /** Of each node: what was added to all below it, and the largest below it with that. */
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

  /** Adds one to every place up to this one, which counts from now on. */
  admit(place: number): void {
    let node = place + this.#leaves;
    this.#added[node]! += 1;
    this.#largest[node] = this.#values[place]! + this.#added[node]!;
    for (; node > 1; node >>= 1) {
      // Whatever is to the left on the way up lies wholly before the place.
      if (node % 2 === 1) {
        this.#added[node - 1]! += 1;
        this.#largest[node - 1]! += 1;
      }
      const above = node >> 1;
      this.#largest[above] = Math.max(this.#largest[2 * above]!, this.#largest[2 * above + 1]!) + this.#added[above]!;
    }
  }
}
