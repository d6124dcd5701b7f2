/**
 * A list of numbers with suffix additions and a range maximum: a tree of sums, with each operation in logarithmic time.
 */
export class MostAfter {
  readonly #size: number;
  /** The largest below each node, without additions above it; the leaves come last. */
  readonly #most: Float64Array;
  readonly #added: Float64Array;

  constructor(values: readonly number[]) {
    this.#size = 2 ** Math.ceil(Math.log2(Math.max(values.length, 1)));
    this.#most = new Float64Array(2 * this.#size).fill(Number.NEGATIVE_INFINITY);
    this.#added = new Float64Array(2 * this.#size);
    this.#most.set(values, this.#size);
    for (let node = this.#size - 1; node > 0; node--) this.#gather(node);
  }

  /** Adds to the number at this index and to all after it. */
  add(place: number, value: number): void {
    let node = this.#size + place;
    this.#raise(node, value);
    for (; node > 1; node >>>= 1) {
      if ((node & 1) === 0) this.#raise(node + 1, value);
      this.#gather(node >>> 1);
    }
  }

  at(place: number): number {
    let node = this.#size + place;
    let value = this.#most[node]!;
    for (node >>>= 1; node > 0; node >>>= 1) value += this.#added[node]!;
    return value;
  }

  /** The index of the largest from `low` up to, but not including, `high`. */
  findMost(low: number, high: number): number {
    return this.#find(1, 0, this.#size, low, high).place;
  }

  #find(node: number, from: number, to: number, low: number, high: number): { place: number; value: number } {
    if (to <= low || high <= from) return { place: -1, value: Number.NEGATIVE_INFINITY };
    if (to - from === 1) return { place: from, value: this.#most[node]! };
    const middle = (from + to) >>> 1;
    const inside = low <= from && to <= high;
    const leftMost = this.#most[2 * node]!;
    const left =
      inside && leftMost < this.#most[2 * node + 1]! ? undefined : this.#find(2 * node, from, middle, low, high);
    const right = inside && left !== undefined ? undefined : this.#find(2 * node + 1, middle, to, low, high);
    const best = right === undefined || (left !== undefined && left.value >= right.value) ? left! : right;
    return { place: best.place, value: best.value + this.#added[node]! };
  }

  #raise(node: number, value: number): void {
    this.#most[node]! += value;
    this.#added[node]! += value;
  }

  #gather(node: number): void {
    this.#most[node] = Math.max(this.#most[2 * node]!, this.#most[2 * node + 1]!) + this.#added[node]!;
  }
}
