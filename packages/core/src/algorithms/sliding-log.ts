import type { CompiledWindow } from "../limits/compiled-limit.ts";
import type { WindowVerdict } from "./window-verdict.ts";

/** Up to this many entries are kept one by one; above it they merge. */
const maxExactEntries = 256;

/**
 * Every time and cost of the last window, oldest first. An entry at `t` counts until `t + per`.
 *
 * Above 256 entries they merge into slots of per/256, each dated at its newest entry: a merged entry is never freed
 * early, so nothing is over-admitted, and is freed at most per/256 late. A log never holds more than 257 entries.
 */
export class SlidingLog {
  /** Time and cost, alternating. */
  #entries: number[] = [];
  #total = 0;

  /** A log with the entries of another (`list`). */
  static from(entries: readonly number[]): SlidingLog {
    const log = new SlidingLog();
    log.#entries = [...entries];
    for (let i = 1; i < entries.length; i += 2) log.#total += entries[i]!;
    return log;
  }

  /** Time and cost, alternating, oldest first. */
  list(): readonly number[] {
    return this.#entries;
  }

  get total(): number {
    return this.#total;
  }

  get size(): number {
    return this.#entries.length / 2;
  }

  get newestMs(): number {
    return this.#entries.length === 0 ? 0 : this.#entries[this.#entries.length - 2]!;
  }

  timeAt(index: number): number {
    return this.#entries[2 * index]!;
  }

  costAt(index: number): number {
    return this.#entries[2 * index + 1]!;
  }

  /** How many entries still count. */
  countAt(nowMs: number, perMs: number): number {
    let passed = 0;
    while (passed < this.size && nowMs - this.timeAt(passed) >= perMs) passed += 1;
    return this.size - passed;
  }

  /** Drops entries that no longer count. */
  settle(nowMs: number, perMs: number): void {
    const entries = this.#entries;
    let kept = 0;
    while (kept < entries.length && nowMs - entries[kept]! >= perMs) {
      this.#total -= entries[kept + 1]!;
      kept += 2;
    }
    if (kept > 0) entries.splice(0, kept);
  }

  /** Adds a cost at a time no earlier than the newest entry's. */
  add(nowMs: number, cost: number, perMs: number): void {
    const entries = this.#entries;
    const slotMs = perMs / maxExactEntries;
    const last = entries.length - 2;
    this.#total += cost;
    if (last >= 0 && entries[last] === nowMs) {
      entries[last + 1]! += cost;
      return;
    }
    entries.push(nowMs, cost);
    if (this.size > maxExactEntries) this.#merge(slotMs);
  }

  /** Takes a cost back out of the entry it was counted in: the first that is dated at or after it. */
  remove(takenMs: number, cost: number): boolean {
    const entries = this.#entries;
    for (let i = 0; i < entries.length; i += 2) {
      if (entries[i]! < takenMs) continue;
      if (entries[i + 1]! < cost) return false;
      entries[i + 1]! -= cost;
      this.#total -= cost;
      if (entries[i + 1] === 0) entries.splice(i, 2);
      return true;
    }
    return false;
  }

  /** Takes a cost back out of the newest entries, as far as there are any. */
  removeNewest(cost: number): void {
    const entries = this.#entries;
    let left = cost;
    while (left > 0 && entries.length > 0) {
      const last = entries.length - 2;
      const removed = Math.min(entries[last + 1]!, left);
      left -= removed;
      this.#total -= removed;
      entries[last + 1]! -= removed;
      if (entries[last + 1] === 0) entries.length = last;
    }
  }

  #merge(slotMs: number): void {
    const merged: number[] = [];
    let slot = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < this.#entries.length; i += 2) {
      const timeMs = this.#entries[i]!;
      const cost = this.#entries[i + 1]!;
      const slotOfEntry = Math.floor(timeMs / slotMs);
      if (slotOfEntry === slot) {
        merged[merged.length - 2] = timeMs;
        merged[merged.length - 1]! += cost;
      } else {
        merged.push(timeMs, cost);
        slot = slotOfEntry;
      }
    }
    this.#entries = merged;
  }
}

/**
 * How long until an entry is freed that leaves more than there is now: the oldest that counts, unless the log is in
 * debt. If a take would merge entries, it is dated as it will be then, which for a preview is at most per/256 late.
 */
function nextFreedMs(
  { capacity, perMs }: CompiledWindow,
  log: SlidingLog,
  first: number,
  used: number,
  nowMs: number,
): number {
  const { size } = log;
  let freed = first;
  let stillUsed = used - log.costAt(first);
  while (stillUsed >= capacity && freed + 1 < size) {
    freed += 1;
    stillUsed -= log.costAt(freed);
  }
  if (size - first < maxExactEntries || log.newestMs === nowMs) return Math.ceil(perMs - (nowMs - log.timeAt(freed)));
  const slotMs = perMs / maxExactEntries;
  const slot = Math.floor(log.timeAt(freed) / slotMs);
  while (freed + 1 < size && Math.floor(log.timeAt(freed + 1) / slotMs) === slot) freed += 1;
  const datedMs = freed + 1 === size && Math.floor(nowMs / slotMs) === slot ? nowMs : log.timeAt(freed);
  return Math.ceil(perMs - (nowMs - datedMs));
}

export function decideLog(
  window: CompiledWindow,
  log: SlidingLog | undefined,
  cost: number,
  nowMs: number,
): WindowVerdict {
  const { capacity, perMs } = window;
  let used = 0;
  let first = 0;
  let size = 0;
  if (log !== undefined) {
    size = log.size;
    used = log.total;
    while (first < size && nowMs - log.timeAt(first) >= perMs) {
      used -= log.costAt(first);
      first += 1;
    }
  }
  const fits = cost > capacity ? "never" : used + cost <= capacity ? "now" : "later";
  const freedMs =
    used === 0 || log === undefined ? Number.POSITIVE_INFINITY : nextFreedMs(window, log, first, used, nowMs);
  let retryAfterMs = fits === "now" ? 0 : Number.POSITIVE_INFINITY;
  if (fits === "later" && log !== undefined) {
    let stillUsed = used;
    for (let i = first; i < size && stillUsed + cost > capacity; i++) {
      stillUsed -= log.costAt(i);
      retryAfterMs = Math.ceil(perMs - (nowMs - log.timeAt(i)));
    }
  }
  return {
    fits,
    remaining: Math.max(capacity - used, 0),
    remainingAfter: Math.max(capacity - used - cost, 0),
    retryAfterMs,
    resetAfterMs: used === 0 || log === undefined ? 0 : Math.ceil(perMs - (nowMs - log.newestMs)),
    resetAfterTakeMs: Math.ceil(perMs),
    moreAfterMs: fits === "later" ? retryAfterMs : freedMs,
    moreAfterTakeMs: used === 0 ? Math.ceil(perMs) : freedMs,
    queuePosition: 0,
    queueDelayMs: 0,
    word0: nowMs + perMs,
    word1: 0,
    word2: 0,
  };
}
