/** Something found by a 64-bit hash. */
export interface Hashed {
  readonly lo: number;
  readonly hi: number;
}

const leastSlots = 16;

/**
 * Things by their 64-bit hash, bounded in number: open addressing, at most half full. Finding allocates nothing, and
 * every check of a leasable counter begins with it.
 */
export class LeaseTable<T extends Hashed> {
  readonly #max: number;
  #slots: (T | undefined)[];
  /** Half of each slot's hash: it rules out most of the others without touching them. */
  #los: Int32Array;
  #size = 0;

  constructor(max: number) {
    this.#max = max;
    this.#slots = emptySlots(leastSlots);
    this.#los = new Int32Array(leastSlots);
  }

  get size(): number {
    return this.#size;
  }

  get isFull(): boolean {
    return this.#size >= this.#max;
  }

  find(lo: number, hi: number): T | undefined {
    const los = this.#los;
    const mask = los.length - 1;
    for (let at = lo & mask; ; at = (at + 1) & mask) {
      const known = los[at]!;
      if (known !== lo && known !== 0) continue;
      const one = this.#slots[at];
      if (one === undefined) return undefined;
      if (one.lo === lo && one.hi === hi) return one;
    }
  }

  /** The table must not be full, nor contain anything with this hash. */
  add(one: T): void {
    if (2 * (this.#size + 1) > this.#slots.length) this.#grow();
    this.#place(one);
    this.#size += 1;
  }

  delete(one: T): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let hole = one.lo & mask;
    while (slots[hole] !== one) {
      if (slots[hole] === undefined) return;
      hole = (hole + 1) & mask;
    }
    this.#clear(hole);
    this.#size -= 1;
    // Entries that follow without a gap may have wanted this place.
    for (let at = (hole + 1) & mask; slots[at] !== undefined; at = (at + 1) & mask) {
      const moved = slots[at]!;
      this.#clear(at);
      this.#place(moved);
    }
  }

  /** Nothing may be added or deleted during the call. */
  forEach(look: (one: T) => void): void {
    for (const one of this.#slots) if (one !== undefined) look(one);
  }

  /** One of several parts, which together cover everything that does not move meanwhile. */
  part(index: number, parts: number): readonly T[] {
    const width = Math.ceil(this.#slots.length / parts);
    return this.#slots.slice(index * width, (index + 1) * width).filter((one) => one !== undefined);
  }

  #place(one: T): void {
    const mask = this.#slots.length - 1;
    let at = one.lo & mask;
    while (this.#slots[at] !== undefined) at = (at + 1) & mask;
    this.#slots[at] = one;
    this.#los[at] = one.lo;
  }

  #clear(at: number): void {
    this.#slots[at] = undefined;
    this.#los[at] = 0;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = emptySlots(2 * before.length);
    this.#los = new Int32Array(2 * before.length);
    for (const one of before) if (one !== undefined) this.#place(one);
  }
}

function emptySlots<T>(count: number): (T | undefined)[] {
  return new Array<T | undefined>(count).fill(undefined);
}
