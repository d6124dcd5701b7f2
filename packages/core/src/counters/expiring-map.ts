/**
 * A map whose entries end, bounded in size, without a timer: ended entries at the front are dropped when something is
 * added, and when the map is full the oldest goes.
 */
export class ExpiringMap<T> {
  readonly #max: number;
  readonly #entries = new Map<string, { readonly value: T; readonly untilMs: number }>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  find(key: string, nowMs: number): T | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.untilMs > nowMs ? entry.value : undefined;
  }

  /** Finds and forgets. */
  take(key: string, nowMs: number): T | undefined {
    const value = this.find(key, nowMs);
    this.#entries.delete(key);
    return value;
  }

  set(key: string, value: T, untilMs: number, nowMs: number): void {
    for (const [oldest, entry] of this.#entries) {
      if (entry.untilMs > nowMs && this.#entries.size < this.#max) break;
      this.#entries.delete(oldest);
    }
    this.#entries.delete(key);
    this.#entries.set(key, { value, untilMs });
  }

  clear(): void {
    this.#entries.clear();
  }
}
