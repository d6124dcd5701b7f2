/** How many owners a counter table can tell apart. */
export const owners = 256;

/**
 * Numbers the windows that counters belong to, so that a counter names its window in one byte. A window keeps its
 * number while it has counters. If there are more windows than numbers, some share one, and count as one when room is
 * short.
 */
export class CounterOwners {
  readonly #numbers = new Map<string, number>();
  readonly #heldBy: (owner: number) => number;

  constructor(heldBy: (owner: number) => number) {
    this.#heldBy = heldBy;
  }

  /** `hash` is the identity's. Callers never see it, so they cannot arrange for windows to share a number. */
  find(identity: string, hash: number): number {
    return this.#numbers.get(identity) ?? this.#assign(identity, hash);
  }

  #assign(identity: string, hash: number): number {
    if (this.#numbers.size < owners) {
      this.#numbers.set(identity, this.#numbers.size);
      return this.#numbers.size - 1;
    }
    // Each call tries one candidate: the first in line, which goes to the end if it still has counters.
    const [[oldest, number]] = this.#numbers as unknown as [[string, number]];
    this.#numbers.delete(oldest);
    const isFree = this.#heldBy(number) === 0;
    this.#numbers.set(isFree ? identity : oldest, number);
    return isFree ? number : hash & (owners - 1);
  }
}
