import type { CompiledWindow } from "../limits/compiled-limit.ts";
import { ExpiringMap } from "./expiring-map.ts";

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
}

interface Outstanding {
  readonly id: string | undefined;
  readonly parts: readonly {
    readonly taken: TakenWindow;
    readonly watched: Watched;
    readonly givenBeforeMs: number;
    readonly beginning: number;
  }[];
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
    this.#outstanding = new ExpiringMap<Outstanding>(max, (receipt) => this.#release(receipt));
  }

  get size(): number {
    return this.#outstanding.size;
  }

  /** `id` is the request id that the take was made under, if any. */
  create(windows: readonly TakenWindow[], id: string | undefined, nowMs: number): string {
    let untilMs = nowMs;
    const parts = windows.map((taken) => {
      untilMs = Math.max(untilMs, taken.word0);
      const watched = this.#watch(taken);
      return { taken, watched, givenBeforeMs: watched.givenMs, beginning: watched.beginnings };
    });
    this.#number += 1;
    const receipt = `m${this.#number}.${drawName()}`;
    this.#outstanding.set(receipt, { id, parts }, untilMs, nowMs);
    return receipt;
  }

  /** Redeems a receipt, which is then gone, and returns what can still be given back. */
  redeem(
    receipt: string,
    nowMs: number,
  ): { readonly id: string | undefined; readonly windows: OutstandingWindow[] } | undefined {
    const found = this.#outstanding.take(receipt, nowMs);
    if (found === undefined) return undefined;
    const windows = found.parts
      .filter(({ watched, beginning }) => watched.beginnings === beginning)
      .map(({ taken, watched, givenBeforeMs }) => ({
        taken,
        givenSinceMs: watched.givenMs - givenBeforeMs,
        noteGiven: (ms: number): void => {
          watched.givenMs += ms;
        },
      }));
    return { id: found.id, windows };
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

  #watch({ window, lo, hi }: TakenWindow): Watched {
    const key = counterKey(window, lo, hi);
    let watched = this.#watched.get(key);
    if (watched === undefined) {
      watched = { out: 0, givenMs: 0, beginnings: 0 };
      this.#watched.set(key, watched);
    }
    watched.out += 1;
    return watched;
  }

  #release({ parts }: Outstanding): void {
    for (const { taken, watched } of parts) {
      watched.out -= 1;
      if (watched.out === 0) this.#watched.delete(counterKey(taken.window, taken.lo, taken.hi));
    }
  }
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
