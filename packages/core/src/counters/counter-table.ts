/**
 * Counters of one width in one flat buffer: open addressing with linear probing, keyed by a 60-bit hash.
 *
 *     slot   | lo: 32 bits | hi: 28 bits | level: 4 bits | word 0 | word 1 | …      8 bytes for the hash and for each word
 *
 * Word 0 is the instant at which the counter is idle, that is, means the same as an absent one (its sign is the
 * algorithm's own). The level is how much of its limit the counter has used, in fifteenths: what would be lost with it.
 *
 * There is no timer per counter and none at all: a new counter takes the place of an idle one where it meets one on its
 * way, and when a table is full it is moved, a few slots with every call, to one of the size that its living counters
 * need, without the idle ones.
 *
 * A counter's place, `at`, is the index of its word 0 among `numbers`.
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

  /** `onDrop` is told of every counter that leaves, with its place. */
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

  /** The numbers of all counters. Replaced when the table grows. */
  get numbers(): Float64Array {
    return this.#arrays.numbers;
  }

  /** The counter's place, or −1. Good until the next `insert` or `delete` in any table of the budget. */
  find(lo: number, hi: number): number {
    if (this.#growing !== undefined) return this.#findWhileGrowing(lo, keyOf(hi));
    return findIn(this.#arrays, this.#stride, lo, keyOf(hi));
  }

  /** Makes room for a counter that `find` did not find, dropping others where it must. Its words are not set. */
  insert(lo: number, hi: number, nowMs: number): number {
    if (this.#count >= this.#arrays.slots * maxLoad) this.#makeRoom(nowMs);
    const budget = this.#budget;
    if (!budget.hasRoom()) budget.evict(nowMs);
    this.#count += 1;
    budget.counters += 1;
    return this.#place(lo, keyOf(hi), nowMs);
  }

  /** Notes how much of its limit a counter has left: 0 … 1, anything below counts as 0. */
  setLeft(at: number, share: number): void {
    const { hashes } = this.#arrays;
    const hi = 2 * at - 1;
    const level = share <= 0 ? maxLevel : maxLevel - ((share * maxLevel) | 0);
    const marked = (hashes[hi]! & keyMask) | level;
    if (hashes[hi] !== marked) hashes[hi] = marked;
  }

  delete(at: number): void {
    this.#drop((at - 1) / this.#stride);
  }

  /** Drops the next idle counter of a stretch of slots. False where there is none. */
  evictIdle(nowMs: number): boolean {
    this.#moveSome();
    const { numbers, hashes, mask } = this.#arrays;
    for (let looked = 0; looked < idleStretch && looked <= mask; looked++) {
      const slot = this.#hand;
      const at = slot * this.#stride + 1;
      if (hashes[2 * at - 1] !== 0 && Math.abs(numbers[at]!) <= nowMs) {
        this.#drop(slot);
        return true;
      }
      this.#hand = (slot + 1) & mask;
    }
    return false;
  }

  /** Drops the counter of a sample that has used least of its limit; of several, the one nearest to idle. */
  evictLeastUsed(): boolean {
    const { numbers, hashes, slots, mask } = this.#arrays;
    let victim = -1;
    let leastUsed = maxLevel + 1;
    let soonestMs = Number.POSITIVE_INFINITY;
    let seen = 0;
    for (let looked = 0; looked < slots && seen < evictionSample; looked++) {
      const slot = this.#hand;
      this.#hand = (slot + 1) & mask;
      const at = slot * this.#stride + 1;
      const hi = hashes[2 * at - 1]!;
      if (hi === 0) continue;
      seen += 1;
      const used = hi & maxLevel;
      const idleMs = Math.abs(numbers[at]!);
      if (used > leastUsed || (used === leastUsed && idleMs >= soonestMs)) continue;
      leastUsed = used;
      soonestMs = idleMs;
      victim = slot;
    }
    if (victim < 0) return false;
    this.#budget.evictedLive += 1;
    this.#drop(victim);
    return true;
  }

  #findWhileGrowing(lo: number, key: number): number {
    this.#moveSome();
    const at = findIn(this.#arrays, this.#stride, lo, key);
    const growing = this.#growing;
    if (at >= 0 || growing === undefined) return at;
    const oldAt = findIn(growing.from, this.#stride, lo, key);
    if (oldAt < 0 || growing.from.numbers[oldAt] === gone) return -1;
    return this.#moveOne(growing.from, oldAt);
  }

  #makeRoom(nowMs: number): void {
    while (this.#growing !== undefined) this.#moveSome();
    const from = this.#arrays;
    const slots = this.#idleShare(nowMs) >= 0.5 ? from.slots : from.slots * 2;
    const bytes = slots * this.#stride * 8;
    // While counters move there are two tables; the bound is on the one that remains.
    if (this.#budget.bytes - from.bytes + bytes > this.#budget.maxBytes) {
      if (!this.evictIdle(nowMs)) this.evictLeastUsed();
      return;
    }
    this.#arrays = createArrays(slots, this.#stride);
    this.#budget.bytes += bytes - from.bytes;
    this.#growing = { from, idleBeforeMs: nowMs, cursor: 0 };
    this.#hand = 0;
  }

  #idleShare(nowMs: number): number {
    const { numbers, hashes, mask } = this.#arrays;
    let seen = 0;
    let idle = 0;
    for (let i = 0; i < idleSample; i++) {
      const at = (Math.imul(i + 1, 0x9e3779b1) & mask) * this.#stride + 1;
      if (hashes[2 * at - 1] === 0) continue;
      seen += 1;
      if (Math.abs(numbers[at]!) <= nowMs) idle += 1;
    }
    return idle / Math.max(seen, 1);
  }

  #moveSome(): void {
    const growing = this.#growing;
    if (growing === undefined) return;
    const { from } = growing;
    const stop = Math.min(growing.cursor + movedPerCall, from.slots);
    for (let slot = growing.cursor; slot < stop; slot++) {
      const at = slot * this.#stride + 1;
      if (from.hashes[2 * at - 1] === 0 || from.numbers[at] === gone) continue;
      if (Math.abs(from.numbers[at]!) > growing.idleBeforeMs) this.#moveOne(from, at);
      else {
        this.#forget(from.numbers, at);
        from.numbers[at] = gone;
      }
    }
    growing.cursor = stop;
    if (stop === from.slots) this.#growing = undefined;
  }

  #moveOne(from: TableArrays, fromAt: number): number {
    const at = this.#place(from.hashes[2 * fromAt - 2]!, from.hashes[2 * fromAt - 1]!, Number.NEGATIVE_INFINITY);
    for (let word = 0; word < this.words; word++) this.#arrays.numbers[at + word] = from.numbers[fromAt + word]!;
    from.numbers[fromAt] = gone;
    return at;
  }

  /** Writes the hash into the first idle slot of its chain, else into the empty one at its end. */
  #place(lo: number, hi: number, nowMs: number): number {
    const { hashes, numbers, mask } = this.#arrays;
    const stride = this.#stride;
    let slot = lo & mask;
    let at = slot * stride + 1;
    while (hashes[2 * at - 1] !== 0) {
      if (Math.abs(numbers[at]!) <= nowMs) {
        this.#forget(numbers, at);
        break;
      }
      slot = (slot + 1) & mask;
      at = slot * stride + 1;
    }
    hashes[2 * at - 2] = lo;
    hashes[2 * at - 1] = hi;
    return at;
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

  /** Drops an idle counter of any table, else a living one of the fullest. */
  evict(nowMs: number): void {
    this.#tables.sort((one, other) => other.count - one.count);
    for (const table of this.#tables) if (table.count > 0 && table.evictIdle(nowMs)) return;
    this.#tables[0]?.evictLeastUsed();
  }
}

const firstSlots = 1024;
const maxLoad = 0.8;
const movedPerCall = 64;
/** Slots that are looked at for an idle counter before a living one goes, and living ones that are compared then. */
const idleStretch = 256;
const evictionSample = 16;
const idleSample = 512;
const maxLevel = 15;
const keyMask = ~maxLevel;
/** In the first word of an old slot: its counter lives in the new arrays now, or was idle and left behind. */
const gone = Number.NEGATIVE_INFINITY;

/** The upper half of a hash without its level; 0 marks an empty slot. */
function keyOf(hi: number): number {
  return hi & keyMask || maxLevel + 1;
}

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

function findIn({ hashes, mask }: TableArrays, stride: number, lo: number, key: number): number {
  let slot = lo & mask;
  for (;;) {
    const at = slot * stride + 1;
    const hi = hashes[2 * at - 1]!;
    if (hi === 0) return -1;
    if ((hi & keyMask) === key && hashes[2 * at - 2] === lo) return at;
    slot = (slot + 1) & mask;
  }
}
