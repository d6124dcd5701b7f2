import { aheadMs, moreArrivesMs, queuePosition, unitsLeft, worthMs } from "../algorithms/arrival.ts";
import type { CompiledWindow } from "../limits/compiled-limit.ts";
import type { CounterTable } from "./counter-table.ts";
import type { Hash64 } from "./hash.ts";
import { noRoom } from "./no-room.ts";
import type { Receipts } from "./receipts.ts";
import { type AskedAgain, mostWindows, type SeveralOutcome } from "./several-takes.ts";
import { ReportedOutcome } from "./take-plan.ts";
import type { WindowCounters } from "./window-counters.ts";

/**
 * Takes from several windows of arrival times in one go if the whole request fits: the commonest case. Only the limit that decides
 * is described in full. `PlannedTakes` handles everything else, such as a denial or a window of another kind; nothing has been
 * changed by then.
 *
 * The numbers found on the way are kept in lists that are reused for the next request.
 */
export class SeveralArrivals {
  readonly #counters: WindowCounters;
  readonly #table: CounterTable;
  readonly #receipts: Receipts;
  readonly #subject: Hash64 = { lo: 0, hi: 0 };
  readonly #windows: CompiledWindow[] = [];
  readonly #los = new Int32Array(mostWindows);
  readonly #his = new Int32Array(mostWindows);
  /** Where each counter is; −1 if there is none. */
  readonly #ats = new Int32Array(mostWindows);
  /** How far ahead of now each was found, and is with the cost. */
  readonly #befores = new Float64Array(mostWindows);
  readonly #aheads = new Float64Array(mostWindows);
  /** What is left in each. */
  readonly #lefts = new Float64Array(mostWindows);
  #found: (SeveralOutcome & { readonly outcome: ReportedOutcome }) | undefined;

  constructor(counters: WindowCounters, receipts: Receipts) {
    this.#counters = counters;
    this.#table = counters.arrivals;
    this.#receipts = receipts;
  }

  /** Undefined if it is not this case; nothing was changed. Throws if there is no room for a counter of a policy that fails closed. */
  take(limits: readonly AskedAgain[], count: number, nowMs: number): SeveralOutcome | undefined {
    const windowCount = this.#hash(limits, count);
    if (windowCount === 0) return undefined;
    const absent = this.#find(windowCount);
    if (!this.#fits(limits, count, nowMs)) return undefined;
    const placesDirectly = absent === 0 || this.#table.hasRoomFor(absent);
    if (!placesDirectly) this.#makeRoom(limits, count, windowCount, nowMs);
    for (let i = 0; i < windowCount; i++) {
      const window = this.#windows[i]!;
      this.#lefts[i] = unitsLeft(window, this.#aheads[i]!);
      if (this.#ats[i]! >= 0) this.#write(i, this.#ats[i]!, nowMs);
    }
    // Counters that were written are no longer idle, so placing others does not replace them.
    for (let i = 0; placesDirectly && absent > 0 && i < windowCount; i++) {
      if (this.#ats[i]! >= 0) continue;
      const window = this.#windows[i]!;
      this.#write(i, this.#counters.place(window, this.#los[i]!, this.#his[i]!, nowMs), nowMs);
      this.#receipts.begin(window, this.#los[i]!, this.#his[i]!);
    }
    return this.#report(limits, count);
  }

  #write(i: number, at: number, nowMs: number): void {
    const table = this.#table;
    table.setLeft(at, this.#lefts[i]! / this.#windows[i]!.capacity);
    table.numbers[at] = nowMs + this.#aheads[i]!;
  }

  /** Names every counter. Returns how many there are; 0 if one is of another kind. */
  #hash(limits: readonly AskedAgain[], count: number): number {
    const subject = this.#subject;
    let windowCount = 0;
    for (let i = 0; i < count; i++) {
      const { windows } = limits[i]!;
      limits[i]!.hashSubject(subject);
      const { lo, hi } = subject;
      for (let w = 0; w < windows.length; w++) {
        const window = windows[w]!;
        if (window.kind !== "arrival") return 0;
        this.#windows[windowCount] = window;
        this.#los[windowCount] = lo ^ window.hashLo;
        this.#his[windowCount] = hi ^ window.hashHi || 1;
        windowCount += 1;
      }
    }
    return windowCount;
  }

  /** How many counters are not there. */
  #find(windowCount: number): number {
    let absent = 0;
    for (let i = 0; i < windowCount; i++) {
      const at = this.#table.find(this.#los[i]!, this.#his[i]!);
      this.#ats[i] = at;
      if (at < 0) absent += 1;
    }
    return absent;
  }

  /**
   * Places the counters that are not there where room may be short, as `PlannedTakes` does: a counter of this request does not make
   * room for another, and a request is not charged in part.
   */
  #makeRoom(limits: readonly AskedAgain[], count: number, windowCount: number, nowMs: number): void {
    const counters = this.#counters;
    const words: (number | undefined)[] = [];
    for (let i = 0; i < windowCount; i++) {
      const at = this.#ats[i]!;
      words.push(at < 0 ? undefined : counters.reserve(this.#windows[i]!, at));
    }
    const placed: number[] = [];
    let next = 0;
    let isClosed = false;
    for (let i = 0; i < count; i++) {
      const { windows, limit } = limits[i]!;
      for (let w = 0; w < windows.length && !isClosed; w++, next++) {
        if (this.#ats[next]! >= 0) continue;
        const window = windows[w]!;
        if (counters.place(window, this.#los[next]!, this.#his[next]!, nowMs) >= 0) {
          this.#receipts.begin(window, this.#los[next]!, this.#his[next]!);
          placed.push(next);
        } else isClosed = limit.policy.onFailure === "closed";
      }
    }
    if (!isClosed) {
      // Placing a counter may move others.
      this.#find(windowCount);
      return;
    }
    for (let i = 0; i < windowCount; i++) {
      const window = this.#windows[i]!;
      const word0 = words[i];
      if (word0 === undefined) continue;
      const remaining = unitsLeft(window, this.#befores[i]!);
      counters.letGo(window, this.#los[i]!, this.#his[i]!, remaining, word0);
    }
    for (const i of placed) counters.forget(this.#windows[i]!, this.#los[i]!, this.#his[i]!);
    throw noRoom();
  }

  /** Whether each of them has room for the cost. */
  #fits(limits: readonly AskedAgain[], count: number, nowMs: number): boolean {
    const { numbers } = this.#table;
    let next = 0;
    for (let i = 0; i < count; i++) {
      const { windows, cost } = limits[i]!;
      for (let w = 0; w < windows.length; w++, next++) {
        const window = windows[w]!;
        const at = this.#ats[next]!;
        const before = at < 0 ? 0 : aheadMs(window, numbers[at]!, nowMs);
        const ahead = before + worthMs(window, cost);
        this.#befores[next] = before;
        this.#aheads[next] = ahead;
        if (cost > window.capacity || ahead > window.toleranceMs) return false;
      }
    }
    return true;
  }

  /** As `ReportedOutcome` and `findDeciding` do for an allowed request: the window with the smallest share left decides. */
  #report(limits: readonly AskedAgain[], count: number): SeveralOutcome {
    const windows = this.#windows;
    const lefts = this.#lefts;
    let speaking = 0;
    let speakingAt = 0;
    let speakingFirst = 0;
    let least = Number.POSITIVE_INFINITY;
    let next = 0;
    for (let i = 0; i < count; i++) {
      const first = next;
      let loudest = first;
      for (const end = first + limits[i]!.windows.length; next < end; next++) {
        if (lefts[next]! < least) least = lefts[next]!;
        if (lefts[next]! * windows[loudest]!.capacity < lefts[loudest]! * windows[next]!.capacity) loudest = next;
      }
      if (i > 0 && lefts[loudest]! * windows[speakingAt]!.capacity >= lefts[speakingAt]! * windows[loudest]!.capacity)
        continue;
      speaking = i;
      speakingAt = loudest;
      speakingFirst = first;
    }
    this.#found ??= { speaking: 0, outcome: new ReportedOutcome(windows[0]!), remaining: 0, atMs: 0 };
    const found = this.#found;
    this.#describe(found.outcome, speakingAt, speakingFirst, limits[speaking]!.windows.length);
    found.speaking = speaking;
    found.remaining = least;
    return found;
  }

  /** The window at `at` speaks for its limit, whose `count` windows stand at `first` and after it. */
  #describe(into: ReportedOutcome, at: number, first: number, count: number): void {
    const window = this.#windows[at]!;
    const ahead = this.#aheads[at]!;
    let remaining = Number.POSITIVE_INFINITY;
    let moreAfterMs = 0;
    for (let i = first; i < first + count; i++) {
      const left = this.#lefts[i]!;
      if (left > remaining) continue;
      const moreMs = moreArrivesMs(this.#windows[i]!, this.#aheads[i]!, left);
      // The least of all grows when every window that has no more than that does.
      moreAfterMs = left === remaining ? Math.max(moreAfterMs, moreMs) : moreMs;
      remaining = left;
    }
    into.fits = "now";
    into.window = window;
    into.remaining = remaining;
    into.windowRemaining = this.#lefts[at]!;
    into.retryAfterMs = 0;
    into.resetAfterMs = Math.ceil(ahead);
    into.moreAfterMs = Math.max(moreAfterMs, 0);
    into.queuePosition = window.leaky ? queuePosition(window, ahead) : 0;
    into.queueDelayMs = window.leaky ? Math.ceil(this.#befores[at]!) : 0;
  }
}
