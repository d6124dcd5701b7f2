/**
 * A map whose entries end, bounded in size, without a timer. When it is full, ended entries go; only if there are none,
 * the oldest goes before its time, and is counted.
 */
export class ExpiringMap<T> {
  readonly #max: number;
  readonly #onDrop: ((value: T) => void) | undefined;
  readonly #entries = new Map<string, { readonly value: T; readonly untilMs: number }>();
  #cutShort = 0;
  /** Additions until ended entries are looked for all over the map, which takes a while, again. */
  #untilSweep = 0;

  /** `onDrop` is told of every value that leaves. */
  constructor(max: number, onDrop?: (value: T) => void) {
    this.#max = max;
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Entries that had to go before their time. */
  get cutShort(): number {
    return this.#cutShort;
  }

  find(key: string, nowMs: number): T | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.untilMs > nowMs ? entry.value : undefined;
  }

  /** Finds and forgets. */
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

  /** How many keys more there is room for without cutting an entry short. */
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

  /** Those at the front, and where the map is full now and then all of them. */
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
