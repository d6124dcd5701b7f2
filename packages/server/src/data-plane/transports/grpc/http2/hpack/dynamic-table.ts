/** What an entry costs beside its texts (RFC 7541 §4.1). */
export const entryOverhead = 32;

/**
 * The fields that a client has had remembered on its connection, newest first, in a bounded number of bytes. Entries live in a
 * ring, so that adding one moves nothing.
 */
export class DynamicTable {
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  readonly #capacity: number;
  /** Where the newest entry is. */
  #newest = 0;
  #count = 0;
  #bytes = 0;
  #maxBytes: number;
  /** How often it has changed. While this number stays the same, so does the meaning of every index. */
  changes = 0;

  /** `mostBytes`: the most that it may ever be set to. */
  constructor(mostBytes: number) {
    this.#maxBytes = mostBytes;
    this.#capacity = Math.floor(mostBytes / entryOverhead) + 1;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How many entries there are. */
  get count(): number {
    return this.#count;
  }

  /** `age`: 0 for the newest; below `count`. */
  nameAt(age: number): string {
    return this.#names[(this.#newest - age + this.#capacity) % this.#capacity]!;
  }

  valueAt(age: number): string {
    return this.#values[(this.#newest - age + this.#capacity) % this.#capacity]!;
  }

  /** Adds an entry, and drops the oldest ones for it. One that is too large drops all, and is not kept. */
  add(name: string, value: string): void {
    this.changes += 1;
    const bytes = name.length + value.length + entryOverhead;
    this.#shrinkTo(this.#maxBytes - bytes);
    if (bytes > this.#maxBytes) return;
    this.#newest = (this.#newest + 1) % this.#capacity;
    this.#names[this.#newest] = name;
    this.#values[this.#newest] = value;
    this.#count += 1;
    this.#bytes += bytes;
  }

  resize(maxBytes: number): void {
    this.changes += 1;
    this.#maxBytes = maxBytes;
    this.#shrinkTo(maxBytes);
  }

  #shrinkTo(bytes: number): void {
    while (this.#bytes > bytes && this.#count > 0) {
      const oldest = (this.#newest - this.#count + 1 + this.#capacity) % this.#capacity;
      this.#bytes -= this.#names[oldest]!.length + this.#values[oldest]!.length + entryOverhead;
      this.#names[oldest] = "";
      this.#values[oldest] = "";
      this.#count -= 1;
    }
  }
}
