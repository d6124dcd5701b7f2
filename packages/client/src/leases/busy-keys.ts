/** How long checks are counted before the count starts over. */
const windowMs = 1_000;
/** How many keys are counted in that time at most. A busy key is soon among the first of them. */
const maxKeys = 4_096;

/** Finds frequently checked keys: counted within a second, for a bounded number of keys. */
export class BusyKeys {
  readonly #perSecond: number;
  readonly #counts = new Map<string, number>();
  #sinceMs = Number.NEGATIVE_INFINITY;

  /** A key is busy starting at this many checks a second. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Counts one check. Returns the rate per second if the key is busy, else 0. */
  note(key: string, nowMs: number): number {
    if (nowMs - this.#sinceMs >= windowMs) {
      this.#counts.clear();
      this.#sinceMs = nowMs;
    }
    const count = (this.#counts.get(key) ?? 0) + 1;
    if (count === 1 && this.#counts.size >= maxKeys) return 0;
    if (count < this.#perSecond) {
      this.#counts.set(key, count);
      return 0;
    }
    this.#counts.delete(key);
    // Many checks at once are not yet many in a second.
    return (count * 1_000) / Math.max(nowMs - this.#sinceMs, windowMs / 4);
  }
}
