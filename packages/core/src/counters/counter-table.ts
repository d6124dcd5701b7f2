/**
 * Counters of one width in one flat buffer: open addressing with linear probing, keyed by a 64-bit hash. A slot is the
 * hash and then `words` numbers; the first of them is the instant at which the counter is idle, that is, means the
 * same as an absent one (its sign is the algorithm's own).
 *
 * There is no timer per counter and none at all: a new counter takes the place of an idle one where it meets one on its
 * way, and when a table is full it is moved, a few slots with every call, to one of the size that its living counters
 * need, without the idle ones.
 */
export class CounterTable {
  readonly words: number;
  readonly #stride: number;
  readonly #budget: CounterBudget;
  readonly #onDrop: ((words: Float64Array, at: number) => void) | undefined;
  #arrays: TableArrays;
  /** While counters move: where from, how far they are, and the moment before which idle ones stay behind. */
  #growing: { readonly from: TableArrays; readonly idleBeforeMs: number; cursor: number } | undefined;
  #count = 0;
  #hand = 0;

  /** `onDrop` is told of every counter that leaves, with the place of its first word. */
  constructor(words: number, budget: CounterBudget, onDrop?: (words: Float64Array, at: number) => void) {
    this.words = words;
    this.#stride = words + 1;
    this.#budget = budget;
    this.#onDrop = onDrop;
    this.#arrays = createArrays(firstSlots, this.#stride);
    budget.bytes += this.#arrays.bytes;
  }

  get count(): number {
    return this.#count;
  }

  /** The numbers of all counters; a counter's begin where `find` and `insert` say. Replaced when the table grows. */
  get numbers(): Float64Array {
    return this.#arrays.numbers;
  }

  /** Where the counter's first word is, or −1. Good until the next `insert`, `delete` or `find`. */
  find(lo: number, hi: number): number {
    if (this.#growing !== undefined) return this.#findWhileGrowing(lo, hi);
    return findIn(this.#arrays, this.#stride, lo, hi);
  }

  /** Makes room for a counter that `find` did not find, dropping others where it must. Its words are not set. */
  insert(lo: number, hi: number, nowMs: number): number {
    if (this.#count >= this.#arrays.slots * maxLoad) this.#makeRoom(nowMs);
    const budget = this.#budget;
    if (!budget.hasRoom()) budget.evict(nowMs);
    this.#count += 1;
    budget.counters += 1;
    return this.#place(lo, hi, nowMs);
  }

  delete(at: number): void {
    this.#drop((at - 1) / this.#stride);
  }

  /** Drops the counter nearest to idle among a sample: the one whose loss gives away least, if anything. */
  evictSoonestIdle(nowMs: number): void {
    this.#moveSome();
    const { numbers, hashes, slots, mask } = this.#arrays;
    let victim = -1;
    let soonestMs = Number.POSITIVE_INFINITY;
    let seen = 0;
    for (let looked = 0; looked < slots && seen < evictionSample; looked++) {
      const slot = this.#hand;
      this.#hand = (slot + 1) & mask;
      const base = slot * this.#stride;
      if (hashes[2 * base + 1] === 0) continue;
      seen += 1;
      const idleMs = Math.abs(numbers[base + 1]!);
      if (idleMs < soonestMs) {
        soonestMs = idleMs;
        victim = slot;
      }
    }
    if (victim < 0) return;
    if (soonestMs > nowMs) this.#budget.evictedLive += 1;
    this.#drop(victim);
  }

  #findWhileGrowing(lo: number, hi: number): number {
    this.#moveSome();
    const at = findIn(this.#arrays, this.#stride, lo, hi);
    const growing = this.#growing;
    if (at >= 0 || growing === undefined) return at;
    const oldAt = findIn(growing.from, this.#stride, lo, hi);
    if (oldAt < 0 || (oldAt - 1) / this.#stride < growing.cursor) return -1;
    if (growing.from.numbers[oldAt] === moved) return -1;
    return this.#moveOne(growing.from, oldAt);
  }

  #makeRoom(nowMs: number): void {
    while (this.#growing !== undefined) this.#moveSome();
    const from = this.#arrays;
    const slots = this.#idleShare(nowMs) >= 0.5 ? from.slots : from.slots * 2;
    const bytes = slots * this.#stride * 8;
    // While counters move there are two tables; the bound holds for the one that remains.
    if (this.#budget.bytes - from.bytes + bytes > this.#budget.maxBytes) {
      this.evictSoonestIdle(nowMs);
      return;
    }
    this.#arrays = createArrays(slots, this.#stride);
    this.#budget.bytes += bytes;
    this.#growing = { from, idleBeforeMs: nowMs, cursor: 0 };
    this.#hand = 0;
  }

  #idleShare(nowMs: number): number {
    const { numbers, hashes, mask } = this.#arrays;
    let seen = 0;
    let idle = 0;
    for (let i = 0; i < idleSample; i++) {
      const base = (Math.imul(i + 1, 0x9e3779b1) & mask) * this.#stride;
      if (hashes[2 * base + 1] === 0) continue;
      seen += 1;
      if (Math.abs(numbers[base + 1]!) <= nowMs) idle += 1;
    }
    return idle / Math.max(seen, 1);
  }

  #moveSome(): void {
    const growing = this.#growing;
    if (growing === undefined) return;
    const { from } = growing;
    const stop = Math.min(growing.cursor + movedPerCall, from.slots);
    for (let slot = growing.cursor; slot < stop; slot++) {
      const base = slot * this.#stride;
      if (from.hashes[2 * base + 1] === 0 || from.numbers[base + 1] === moved) continue;
      if (Math.abs(from.numbers[base + 1]!) <= growing.idleBeforeMs) this.#forget(from.numbers, base + 1);
      else this.#moveOne(from, base + 1);
    }
    growing.cursor = stop;
    if (stop === from.slots) {
      this.#budget.bytes -= from.bytes;
      this.#growing = undefined;
    }
  }

  #moveOne(from: TableArrays, fromAt: number): number {
    const hash = 2 * (fromAt - 1);
    const at = this.#place(from.hashes[hash]!, from.hashes[hash + 1]!, Number.NEGATIVE_INFINITY);
    for (let word = 0; word < this.words; word++) this.#arrays.numbers[at + word] = from.numbers[fromAt + word]!;
    from.numbers[fromAt] = moved;
    return at;
  }

  /** Writes the hash into the first idle slot of its chain, else into the empty one at its end. */
  #place(lo: number, hi: number, nowMs: number): number {
    const { hashes, numbers, mask } = this.#arrays;
    const stride = this.#stride;
    let base = (lo & mask) * stride;
    let slot = lo & mask;
    while (hashes[2 * base + 1] !== 0) {
      if (Math.abs(numbers[base + 1]!) <= nowMs) {
        this.#forget(numbers, base + 1);
        break;
      }
      slot = (slot + 1) & mask;
      base = slot * stride;
    }
    hashes[2 * base] = lo;
    hashes[2 * base + 1] = hi;
    return base + 1;
  }

  #forget(numbers: Float64Array, at: number): void {
    this.#onDrop?.(numbers, at);
    this.#count -= 1;
    this.#budget.counters -= 1;
  }

  /** Empties a slot and closes the gap: later members of the chain that may stand earlier move up. */
  #drop(slot: number): void {
    const { hashes, numbers, mask } = this.#arrays;
    const stride = this.#stride;
    this.#forget(numbers, slot * stride + 1);
    let gap = slot;
    let next = slot;
    for (;;) {
      next = (next + 1) & mask;
      const nextBase = next * stride;
      if (hashes[2 * nextBase + 1] === 0) break;
      const home = hashes[2 * nextBase]! & mask;
      const staysBehindGap = gap <= next ? gap < home && home <= next : gap < home || home <= next;
      if (staysBehindGap) continue;
      numbers.copyWithin(gap * stride, nextBase, nextBase + stride);
      gap = next;
    }
    hashes[2 * gap * stride] = 0;
    hashes[2 * gap * stride + 1] = 0;
  }
}

/** What all tables of a store may use together. */
export class CounterBudget {
  counters = 0;
  bytes = 0;
  /** Counters dropped while they still meant something, because there was no room. */
  evictedLive = 0;
  readonly maxCounters: number;
  readonly maxBytes: number;
  readonly #tables: CounterTable[] = [];

  constructor(maxCounters: number, maxBytes: number) {
    this.maxCounters = maxCounters;
    this.maxBytes = maxBytes;
  }

  /** Takes a table's counters into account when somebody has to go. */
  watch(table: CounterTable): CounterTable {
    this.#tables.push(table);
    return table;
  }

  hasRoom(): boolean {
    return this.counters < this.maxCounters && this.bytes <= this.maxBytes;
  }

  /** Drops one counter of the fullest table. */
  evict(nowMs: number): void {
    let fullest = this.#tables[0];
    for (const table of this.#tables) if (table.count > (fullest?.count ?? 0)) fullest = table;
    fullest?.evictSoonestIdle(nowMs);
  }
}

const firstSlots = 1024;
const maxLoad = 0.8;
const movedPerCall = 64;
const evictionSample = 16;
const idleSample = 512;
/** In the first word of an old slot: its counter lives in the new arrays now. */
const moved = Number.NEGATIVE_INFINITY;

interface TableArrays {
  readonly slots: number;
  readonly mask: number;
  readonly bytes: number;
  /** One buffer under two views, so that a counter's hash and numbers share a cache line. */
  readonly numbers: Float64Array;
  readonly hashes: Int32Array;
}

function createArrays(slots: number, stride: number): TableArrays {
  const buffer = new ArrayBuffer(slots * stride * 8);
  return {
    slots,
    mask: slots - 1,
    bytes: buffer.byteLength,
    numbers: new Float64Array(buffer),
    hashes: new Int32Array(buffer),
  };
}

function findIn(arrays: TableArrays, stride: number, lo: number, hi: number): number {
  const { hashes, mask } = arrays;
  let slot = lo & mask;
  for (;;) {
    const base = slot * stride;
    const foundHi = hashes[2 * base + 1];
    if (foundHi === 0) return -1;
    if (foundHi === hi && hashes[2 * base] === lo) return base + 1;
    slot = (slot + 1) & mask;
  }
}
