/**
 * A map of bounded size whose entries expire, without a timer. When it is full, expired entries go; only if there are
 * none, the oldest goes early, and is counted.
 */
export class ExpiringMap<T> {
  readonly #max: number;
  readonly #onDrop: ((value: T) => void) | undefined;
  readonly #entries = new Map<string, { readonly value: T; readonly untilMs: number }>();
  #cutShort = 0;
  /** Additions until the next search of the whole map for expired entries, which takes a while. */
  #untilSweep = 0;

  /** `onDrop` is called for every value that leaves. */
  constructor(max: number, onDrop?: (value: T) => void) {
    this.#max = max;
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Entries that had to go early. */
  get cutShort(): number {
    return this.#cutShort;
  }

  find(key: string, nowMs: number): T | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.untilMs > nowMs ? entry.value : undefined;
  }

  /** Finds and removes. */
  take(key: string, nowMs: number): T | undefined {
    const value = this.find(key, nowMs);
    this.delete(key);
    return value;
  }

  set(key: string, value: T, untilMs: number, nowMs: number): void {
    this.delete(key);
    this.#dropEnded(nowMs);
    if (this.#entries.size >= this.#max) this.#cutOldest();
    this.#entries.set(key, { value, untilMs });
  }

  /** How many more keys fit without cutting an entry short. */
  roomAt(nowMs: number): number {
    this.#dropEnded(nowMs);
    return this.#max - this.#entries.size;
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#onDrop?.(entry.value);
  }

  clear(): void {
    for (const key of [...this.#entries.keys()]) this.delete(key);
  }

  /** Drops expired entries at the front; if the map is full, now and then all of them. */
  #dropEnded(nowMs: number): void {
    this.#untilSweep -= 1;
    for (const [oldest, entry] of this.#entries) {
      if (entry.untilMs > nowMs) break;
      this.delete(oldest);
    }
    if (this.#entries.size < this.#max || this.#untilSweep > 0) return;
    this.#untilSweep = Math.ceil(this.#max / 10);
    for (const [key, entry] of this.#entries) if (entry.untilMs <= nowMs) this.delete(key);
  }

  #cutOldest(): void {
    const [oldest] = this.#entries.keys();
    if (oldest === undefined) return;
    this.#cutShort += 1;
    this.delete(oldest);
  }
}
