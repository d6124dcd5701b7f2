/** Something that ends. Its place in the queue is the queue's business. */
export interface Ending {
  endsMs: number;
  place: number;
}

/** What ends, the earliest first: a binary heap that knows where each member is, so that any of them can leave. */
export class ExpiryQueue<T extends Ending> {
  readonly #heap: T[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** Infinity if it is empty. */
  get nextMs(): number {
    return this.#heap[0]?.endsMs ?? Number.POSITIVE_INFINITY;
  }

  add(one: T): void {
    this.#put(one, this.#heap.length);
    this.#rise(one.place);
  }

  remove(one: T): void {
    const last = this.#heap.pop()!;
    if (last === one) return;
    this.#put(last, one.place);
    this.#settle(last);
  }

  /** Its end has changed. */
  move(one: T, endsMs: number): void {
    one.endsMs = endsMs;
    this.#settle(one);
  }

  /** The earliest, if it has ended by now; it leaves. */
  takeEnded(nowMs: number): T | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.endsMs > nowMs) return undefined;
    this.remove(first);
    return first;
  }

  #settle(one: T): void {
    this.#rise(one.place);
    this.#sink(one.place);
  }

  #rise(from: number): void {
    const one = this.#heap[from]!;
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (this.#heap[above]!.endsMs <= one.endsMs) break;
      this.#put(this.#heap[above]!, place);
      place = above;
    }
    this.#put(one, place);
  }

  #sink(from: number): void {
    const one = this.#heap[from]!;
    const { length } = this.#heap;
    let place = from;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= length) break;
      if (below + 1 < length && this.#heap[below + 1]!.endsMs < this.#heap[below]!.endsMs) below += 1;
      if (this.#heap[below]!.endsMs >= one.endsMs) break;
      this.#put(this.#heap[below]!, place);
      place = below;
    }
    this.#put(one, place);
  }

  #put(one: T, place: number): void {
    this.#heap[place] = one;
    one.place = place;
  }
}
