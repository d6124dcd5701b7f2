/** How many owners a counter table tells apart. */
export const owners = 256;

/**
 * Numbers for the windows that counters belong to, so that a counter says in a byte whose it is. A window keeps its number
 * while it has counters. Where there are more windows than numbers, some share one, and count as one when room is short.
 */
export class CounterOwners {
  readonly #numbers = new Map<string, number>();
  readonly #heldBy: (owner: number) => number;

  constructor(heldBy: (owner: number) => number) {
    this.#heldBy = heldBy;
  }

  /** `hash` is the identity's, and is never shown to callers, so which windows share a number cannot be arranged. */
  find(identity: string, hash: number): number {
    return this.#numbers.get(identity) ?? this.#assign(identity, hash);
  }

  #assign(identity: string, hash: number): number {
    if (this.#numbers.size < owners) {
      this.#numbers.set(identity, this.#numbers.size);
      return this.#numbers.size - 1;
    }
    // One candidate with every call: the first in line, which goes to its end if it still has counters.
    const [[oldest, number]] = this.#numbers as unknown as [[string, number]];
    this.#numbers.delete(oldest);
    const isFree = this.#heldBy(number) === 0;
    this.#numbers.set(isFree ? identity : oldest, number);
    return isFree ? number : hash & (owners - 1);
  }
}
