import type { CompiledWindow } from "../limits/compiled-limit.ts";
import { ExpiringMap } from "./expiring-map.ts";

/** Of how many holds of a counter it is known how they lie to each other: giving one back looks at all of them. */
const mostOrdered = 500;

/** What a take from a window leaves behind, so that it can be undone. */
export interface TakenWindow {
  readonly window: CompiledWindow;
  readonly lo: number;
  readonly hi: number;
  readonly cost: number;
  readonly takenMs: number;
  /** The counter's first word as the take left it. */
  readonly word0: number;
}

/** A taken window that can still be given back. */
export interface OutstandingWindow {
  readonly taken: TakenWindow;
  /**
   * How many milliseconds have been given back to the counter since: they moved this take's stretch of time forward.
   */
  readonly givenSinceMs: number;
  /** Notes how much giving this one back gave. */
  noteGiven(ms: number): void;
}

/** What a credit did to a counter: whether it is empty now, and how much time an arrival counter got back. */
export interface Credited {
  readonly emptied: boolean;
  readonly givenMs: number;
}

/** What happens to a counter while receipts for it are outstanding. */
interface Watched {
  out: number;
  givenMs: number;
  /** Counts resets, and drops followed by a new start: both void earlier receipts. */
  beginnings: number;
  /** What is held of it, up to `mostOrdered`. */
  held: Set<WatchedWindow> | undefined;
}

/** A taken window, and how its counter stood then. */
export interface WatchedWindow {
  readonly taken: TakenWindow;
  readonly watched: Watched;
  readonly givenBeforeMs: number;
  readonly beginning: number;
  /** If it is held: how much of what other holds gave since lay behind it, and so did not move its stretch of time. */
  givenBehindMs: number;
}

interface Outstanding {
  readonly id: string | undefined;
  readonly parts: readonly WatchedWindow[];
}

/**
 * Outstanding receipts: a bounded number, each valid once and until the moment of its take has passed. A forgotten
 * receipt is void, which costs its holder a give-back and no other caller anything.
 */
export class Receipts {
  readonly #outstanding: ExpiringMap<Outstanding>;
  readonly #watched = new Map<string, Watched>();
  #number = 0;

  constructor(max: number) {
    this.#outstanding = new ExpiringMap<Outstanding>(max, ({ parts }) => this.#release(parts));
  }

  get size(): number {
    return this.#outstanding.size;
  }

  /** `id` is the request id that the take was made under, if any. */
  create(windows: readonly TakenWindow[], id: string | undefined, nowMs: number): string {
    let untilMs = nowMs;
    for (const { word0 } of windows) untilMs = Math.max(untilMs, word0);
    const receipt = this.drawName("m");
    this.#outstanding.set(receipt, { id, parts: this.#watchAll(windows) }, untilMs, nowMs);
    return receipt;
  }

  /** A name that no other has, and that no caller can guess. */
  drawName(kind: string): string {
    this.#number += 1;
    return `${kind}${this.#number}.${drawName()}`;
  }

  /**
   * Watches what is given back to these counters until `release`, and where. A receipt assumes that everything given
   * since lay before its own stretch of time, which errs on the strict side. Holds of one subject are settled in any
   * order, all of them: for so many at a time it is known.
   */
  hold(windows: readonly TakenWindow[]): readonly WatchedWindow[] {
    const parts = this.#watchAll(windows);
    for (const part of parts) {
      part.watched.held ??= new Set();
      if (part.watched.held.size < mostOrdered) part.watched.held.add(part);
    }
    return parts;
  }

  release(parts: readonly WatchedWindow[]): void {
    for (const part of parts) part.watched.held?.delete(part);
    this.#release(parts);
  }

  /** Redeems a receipt, which is then gone, and returns what can still be given back. */
  redeem(
    receipt: string,
    nowMs: number,
  ): { readonly id: string | undefined; readonly windows: OutstandingWindow[] } | undefined {
    const found = this.#outstanding.take(receipt, nowMs);
    if (found === undefined) return undefined;
    const windows = found.parts.map((part) => this.findOutstanding(part, part.taken.cost));
    return { id: found.id, windows: windows.filter((one) => one !== undefined) };
  }

  /** What can still be given back of this much of a take; undefined if its counter has started anew since. */
  findOutstanding(part: WatchedWindow, cost: number): OutstandingWindow | undefined {
    const { taken, watched, beginning } = part;
    if (watched.beginnings !== beginning) return undefined;
    return {
      taken: cost === taken.cost ? taken : { ...taken, cost },
      givenSinceMs: movedMs(part),
      noteGiven: (ms: number): void => {
        if (watched.held?.has(part) === true) {
          const endsMs = taken.word0 - movedMs(part);
          for (const held of watched.held)
            if (held !== part && held.taken.word0 - movedMs(held) < endsMs) held.givenBehindMs += ms;
        }
        watched.givenMs += ms;
      },
    };
  }

  /** The counter starts anew: earlier takes cannot be given back. */
  begin(window: CompiledWindow, lo: number, hi: number): void {
    if (this.#watched.size === 0) return;
    const watched = this.#watched.get(counterKey(window, lo, hi));
    if (watched !== undefined) watched.beginnings += 1;
  }

  /**
   * Notes a credit without a receipt. Outstanding receipts see it as another one being redeemed. If it emptied the
   * counter, nothing that they stand for is left: later takes are other requests'.
   */
  credit(window: CompiledWindow, lo: number, hi: number, { emptied, givenMs }: Credited): void {
    if (this.#watched.size === 0) return;
    const watched = this.#watched.get(counterKey(window, lo, hi));
    if (watched === undefined) return;
    watched.givenMs += givenMs;
    if (emptied) watched.beginnings += 1;
  }

  #watchAll(windows: readonly TakenWindow[]): readonly WatchedWindow[] {
    return windows.map((taken) => {
      const watched = this.#watch(taken);
      return { taken, watched, givenBeforeMs: watched.givenMs, beginning: watched.beginnings, givenBehindMs: 0 };
    });
  }

  #watch({ window, lo, hi }: TakenWindow): Watched {
    const key = counterKey(window, lo, hi);
    let watched = this.#watched.get(key);
    if (watched === undefined) {
      watched = { out: 0, givenMs: 0, beginnings: 0, held: undefined };
      this.#watched.set(key, watched);
    }
    watched.out += 1;
    return watched;
  }

  #release(parts: readonly WatchedWindow[]): void {
    for (const { taken, watched } of parts) {
      watched.out -= 1;
      if (watched.out === 0) this.#watched.delete(counterKey(taken.window, taken.lo, taken.hi));
    }
  }
}

/** By how much give-backs have moved the stretch of time that a take stands for. */
function movedMs({ watched, givenBeforeMs, givenBehindMs }: WatchedWindow): number {
  return watched.givenMs - givenBeforeMs - givenBehindMs;
}

/** 96 random bits, so that a caller cannot guess another's receipt. Drawn in stock, which is cheaper. */
function drawName(): string {
  if (drawn >= stock.length) {
    crypto.getRandomValues(stock);
    drawn = 0;
  }
  let name = "";
  for (const end = drawn + 3; drawn < end; drawn++) name += stock[drawn]!.toString(36).padStart(7, "0");
  return name;
}

declare const crypto: { getRandomValues(array: Uint32Array): Uint32Array };
const stock = new Uint32Array(3 * 64);
let drawn = stock.length;

function counterKey({ kind }: CompiledWindow, lo: number, hi: number): string {
  return `${kind} ${lo} ${hi}`;
}
