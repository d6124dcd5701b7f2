import { owners } from "./counter-owners.ts";

/**
 * Counters of one width in one flat buffer: open addressing with linear probing, keyed by a 52-bit hash.
 *
 *     slot   | lo: 32 bits | hi: 20 bits | owner: 8 bits | level: 4 bits | word 0 | word 1 | …
 *
 * The hash, owner and level take 8 bytes, and so does each word. Word 0 is the instant at which the counter is idle, that
 * is, means the same as an absent one (its sign is the algorithm's own). The owner is the limit that the counter belongs
 * to. The level is how much of its limit the counter has used, in fifteenths: what would be lost with it. At the highest
 * level a counter is exhausted, and is not dropped before it is idle.
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
  /** While counters move: the source, how far the move has got, and the moment before which idle ones stay behind. */
  #growing: { readonly from: TableArrays; readonly idleBeforeMs: number; cursor: number } | undefined;
  #count = 0;
  #hand = 0;
  /** Counters by owner, and those among them that are exhausted. */
  readonly #held = new Uint32Array(owners);
  readonly #exhausted = new Uint32Array(owners);
  #highestOwner = 0;

  /** `onDrop` is called for every counter that leaves, with its place. */
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
    if (this.#growing !== undefined) return this.#findWhileGrowing(lo, slotKey(hi));
    return findIn(this.#arrays, this.#stride, lo, slotKey(hi));
  }

  /**
   * Makes room for a counter that `find` did not find, dropping others if it must. Its words are not set. Returns −1 if
   * there is no room, because every counter that could be dropped for it is exhausted.
   */
  insert(lo: number, hi: number, nowMs: number, owner = 0): number {
    const budget = this.#budget;
    if (this.#count >= this.#arrays.slots * maxLoad && !this.#grow(nowMs)) {
      const room = this.#arrays.slots * fullLoad - this.#count;
      if (this.#held[owner]! >= roomFactor * room && !this.evictWithin(this.#held[owner]!, nowMs))
        return this.#refuse();
    }
    if (!budget.hasRoomFor(this.#held[owner]!) && !budget.evict(this.#held[owner]!, nowMs)) return this.#refuse();
    if (owner > this.#highestOwner) this.#highestOwner = owner;
    this.#count += 1;
    this.#held[owner]! += 1;
    budget.counters += 1;
    return this.#place(lo, slotKey(hi) | (owner << ownerShift), nowMs);
  }

  get highestOwner(): number {
    return this.#highestOwner;
  }

  /** Whether this many counters, of any limits, can be inserted without growing the table or dropping another counter. */
  hasRoomFor(counters: number): boolean {
    const count = this.#count + counters;
    return count <= this.#arrays.slots * maxLoad && this.#budget.hasRoomFor(count, counters);
  }

  /** How many counters a limit has here, and how many of them may be dropped. */
  heldBy(owner: number): number {
    return this.#held[owner]!;
  }

  countEvictable(owner: number): number {
    return this.#held[owner]! - this.#exhausted[owner]!;
  }

  /** Notes the share of its limit that a counter has left: 0 … 1; anything below counts as 0. */
  setLeft(at: number, share: number): void {
    const { hashes } = this.#arrays;
    const hi = 2 * at - 1;
    const level = share <= 0 ? maxLevel : maxLevel - ((share * maxLevel) | 0);
    const before = hashes[hi]!;
    const marked = (before & ~maxLevel) | level;
    if (before === marked) return;
    hashes[hi] = marked;
    if (level === maxLevel) this.#exhausted[slotOwner(before)]! += 1;
    else if ((before & maxLevel) === maxLevel) this.#exhausted[slotOwner(before)]! -= 1;
  }

  delete(at: number): void {
    this.#drop((at - 1) / this.#stride);
  }

  /** Drops the next idle counter in a stretch of slots. False if there is none. */
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

  /**
   * From a sample of a limit's counters, drops the one that has used least of it; among equals, the one nearest to
   * idle. An idle counter met on the way goes instead, and an exhausted one never does. False if none was found.
   */
  evictLeastUsed(owner: number, nowMs: number): boolean {
    if (this.countEvictable(owner) === 0) return false;
    this.#moveSome();
    const { numbers, hashes, slots, mask } = this.#arrays;
    let victim = -1;
    let leastUsed = maxLevel;
    let soonestMs = Number.POSITIVE_INFINITY;
    let seen = 0;
    for (let looked = 0; looked < slots && looked < longestSearch && seen < evictionSample; looked++) {
      const slot = this.#hand;
      this.#hand = (slot + 1) & mask;
      const at = slot * this.#stride + 1;
      const hi = hashes[2 * at - 1]!;
      if (hi === 0) continue;
      const idleMs = Math.abs(numbers[at]!);
      if (idleMs <= nowMs) {
        this.#drop(slot);
        return true;
      }
      const used = hi & maxLevel;
      if (used === maxLevel || slotOwner(hi) !== owner) continue;
      seen += 1;
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

  /**
   * Drops what `CounterBudget.evict` would if this were the only table: when bytes are short, no other table makes
   * room.
   */
  evictWithin(atLeast: number, nowMs: number): boolean {
    if (this.evictIdle(nowMs)) return true;
    const largest = findLargest([this], atLeast);
    return largest !== undefined && this.evictLeastUsed(largest.owner, nowMs);
  }

  #refuse(): number {
    this.#budget.refused += 1;
    return -1;
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

  /** Begins to move to larger arrays. False if the bound on bytes does not allow it. */
  #grow(nowMs: number): boolean {
    while (this.#growing !== undefined) this.#moveSome();
    const from = this.#arrays;
    const slots = this.#idleShare(nowMs) >= 0.5 ? from.slots : from.slots * 2;
    const bytes = slots * this.#stride * 8;
    // While counters move there are two tables; the bound is on the one that remains.
    const more = bytes - from.bytes;
    if (more > 0 && !this.#budget.leavesRoom(bytes, more)) return false;
    this.#arrays = createArrays(slots, this.#stride);
    this.#budget.bytes += more;
    this.#growing = { from, idleBeforeMs: nowMs, cursor: 0 };
    this.#hand = 0;
    return true;
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
        this.#forget(from, at);
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

  /** Writes the hash into the first idle slot of its chain, or into the empty one at its end. */
  #place(lo: number, hi: number, nowMs: number): number {
    const { hashes, numbers, mask } = this.#arrays;
    const stride = this.#stride;
    let slot = lo & mask;
    let at = slot * stride + 1;
    while (hashes[2 * at - 1] !== 0) {
      if (Math.abs(numbers[at]!) <= nowMs) {
        this.#forget(this.#arrays, at);
        break;
      }
      slot = (slot + 1) & mask;
      at = slot * stride + 1;
    }
    hashes[2 * at - 2] = lo;
    hashes[2 * at - 1] = hi;
    return at;
  }

  #forget({ numbers, hashes }: TableArrays, at: number): void {
    this.#onDrop?.(numbers, at);
    const hi = hashes[2 * at - 1]!;
    this.#held[slotOwner(hi)]! -= 1;
    if ((hi & maxLevel) === maxLevel) this.#exhausted[slotOwner(hi)]! -= 1;
    this.#count -= 1;
    this.#budget.counters -= 1;
  }

  /** Empties a slot and closes the gap: later members of the chain that may stand earlier move up. */
  #drop(slot: number): void {
    const { hashes, numbers, mask } = this.#arrays;
    const stride = this.#stride;
    this.#forget(this.#arrays, slot * stride + 1);
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

/** The memory that all tables of a store share. */
export class CounterBudget {
  counters = 0;
  bytes = 0;
  /** Live counters dropped because there was no room. */
  evictedLive = 0;
  /** Counters not kept, because those that could have made room for them were exhausted. */
  refused = 0;
  readonly maxCounters: number;
  readonly maxBytes: number;
  readonly #tables: CounterTable[] = [];

  constructor(maxCounters: number, maxBytes: number) {
    this.maxCounters = maxCounters;
    this.maxBytes = maxBytes;
  }

  /** Adds a table to those whose counters compete for room. */
  watch(table: CounterTable): CounterTable {
    this.#tables.push(table);
    return table;
  }

  heldBy(owner: number): number {
    let held = 0;
    for (const table of this.#tables) held += table.heldBy(owner);
    return held;
  }

  /**
   * Whether a limit with `held` counters may have one more, after `more` others, without dropping another. None may have more
   * than eight times the room it leaves, so there is always some for the others.
   */
  hasRoomFor(held: number, more = 0): boolean {
    return held < roomFactor * (this.maxCounters - this.counters - more);
  }

  /** The same for bytes: whether `bytes` leave enough for the others, even after `more` of them. */
  leavesRoom(bytes: number, more = 0): boolean {
    return bytes <= roomFactor * (this.maxBytes - this.bytes - more);
  }

  /**
   * Drops an idle counter of any table, or else one in use: of the limit with the most, if that is at least as many as
   * the newcomer's limit has, and never an exhausted one. False if there is none.
   */
  evict(atLeast: number, nowMs: number): boolean {
    this.#tables.sort((one, other) => other.count - one.count);
    for (const one of this.#tables) if (one.count > 0 && one.evictIdle(nowMs)) return true;
    const largest = findLargest(this.#tables, atLeast);
    return largest?.table.evictLeastUsed(largest.owner, nowMs) ?? false;
  }
}

/** The limit with the most counters in one of these tables, if it has at least this many and some may be dropped. */
function findLargest(
  tables: readonly CounterTable[],
  atLeast: number,
): { readonly table: CounterTable; readonly owner: number } | undefined {
  let largest: { readonly table: CounterTable; readonly owner: number } | undefined;
  let most = Math.max(atLeast, 1) - 1;
  for (const table of tables) {
    if (table.count <= most) continue;
    for (let owner = 0; owner <= table.highestOwner; owner++) {
      if (table.heldBy(owner) <= most || table.countEvictable(owner) === 0) continue;
      most = table.heldBy(owner);
      largest = { table, owner };
    }
  }
  return largest;
}

/** Nothing takes more than this many times the room that it leaves. */
const roomFactor = 8;
const firstSlots = 1024;
const maxLoad = 0.8;
/** The load of a table that cannot grow any further, up to which small limits still find room. */
const fullLoad = 0.9;
const movedPerCall = 64;
/** How many slots to search for an idle counter before dropping a live one, and how many live ones to compare. */
const idleStretch = 256;
const evictionSample = 16;
/** How many slots to search for those. The next search continues where this one stopped. */
const longestSearch = 1024;
const idleSample = 512;
const maxLevel = 15;
const ownerShift = 4;
const keyMask = ~0xfff;
/** In the first word of an old slot: its counter lives in the new arrays now, or was idle and left behind. */
const gone = Number.NEGATIVE_INFINITY;

/** The upper half of a hash without owner and level; 0 marks an empty slot. */
function slotKey(hi: number): number {
  return hi & keyMask || ~keyMask + 1;
}

function slotOwner(hi: number): number {
  return (hi >>> ownerShift) & (owners - 1);
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
