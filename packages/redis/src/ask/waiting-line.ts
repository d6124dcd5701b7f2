/**
 * Questions that wait to be sent. Those that arrive at once, such as a batch of a thousand checks, are one slice;
 * slices take turns, so that a large one does not hold up the rest.
 */
export class WaitingLine<T> {
  readonly #slices: Slice<T>[] = [];
  #open: Slice<T> | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(item: T): void {
    if (this.#open === undefined) {
      this.#open = { items: [], next: 0, turn: 0 };
      this.#slices.push(this.#open);
    }
    this.#open.items.push(item);
    this.#length += 1;
  }

  /** Puts items before everything else: they have waited already. */
  pushFirst(items: readonly T[]): void {
    if (items.length === 0) return;
    this.#slices.unshift({ items: [...items], next: 0, turn: 0 });
    this.#length += items.length;
  }

  /** Later items belong to a new slice. */
  endSlice(): void {
    this.#open = undefined;
  }

  /**
   * Takes items, a few of each slice in turn, as long as they are wanted. A turn continues where it was interrupted.
   */
  take(perTurn: number, wanted: (item: T) => boolean): T[] {
    const taken: T[] = [];
    this.endSlice();
    for (let slice = this.#slices[0]; slice !== undefined; slice = this.#slices[0]) {
      if (slice.next < slice.items.length && slice.turn < perTurn) {
        const item = slice.items[slice.next]!;
        if (!wanted(item)) break;
        taken.push(item);
        slice.next += 1;
        slice.turn += 1;
        continue;
      }
      slice.turn = 0;
      this.#slices.shift();
      if (slice.next < slice.items.length) this.#slices.push(slice);
    }
    this.#length -= taken.length;
    return taken;
  }

  /** Keeps only items that pass. */
  filter(keeps: (item: T) => boolean): void {
    this.#length = 0;
    for (const slice of this.#slices) {
      slice.items = slice.items.slice(slice.next).filter(keeps);
      slice.next = 0;
      this.#length += slice.items.length;
    }
    const filled = this.#slices.filter(({ items }) => items.length > 0);
    this.#slices.length = 0;
    this.#slices.push(...filled);
    if (this.#open !== undefined && !filled.includes(this.#open)) this.#open = undefined;
  }

  *[Symbol.iterator](): Generator<T> {
    for (const { items, next } of this.#slices) for (let i = next; i < items.length; i++) yield items[i]!;
  }
}

interface Slice<T> {
  items: T[];
  next: number;
  /** How many were taken in this turn. */
  turn: number;
}
