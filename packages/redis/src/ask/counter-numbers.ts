import type { CompiledWindow } from "sluice/store";
import type { ArrivalStep } from "./question.ts";
import { findCode } from "./window-code.ts";

/** What tells counters apart. */
export type Asked = Pick<ArrivalStep, "window" | "subject">;

/**
 * Numbers the counters of one call from 1, each once, however often it is asked for. It is reused, because a map for
 * every call costs each check in it more than encoding it does; for the same reason it keeps no texts.
 *
 * Counters are found by a hash of the last few letters and by comparing. Subjects made to collide cost a call as many
 * comparisons as half of its questions squared, some ten microseconds.
 */
export class CounterNumbers {
  /** By hash: the first question about a counter, from 1; 0 if there is none. */
  readonly #slots: Uint8Array;
  /** By question: the number of its counter. */
  readonly #numbers: Uint8Array;
  readonly #mask: number;
  #asked: readonly Asked[] = [];
  #count = 0;

  /** At most 255. */
  constructor(most: number) {
    this.#mask = 2 ** Math.ceil(Math.log2(4 * most)) - 1;
    this.#slots = new Uint8Array(this.#mask + 1);
    this.#numbers = new Uint8Array(most);
  }

  /** Starts over with these questions. */
  begin(asked: readonly Asked[]): void {
    this.#asked = asked;
    this.#slots.fill(0);
    this.#count = 0;
  }

  /**
   * The number of the counter that the question at `index` is about; a new counter gets the next number. Call it in
   * order, once per index.
   */
  numberAt(index: number): number {
    const { window, subject } = this.#asked[index]!;
    let slot = lastLetters(subject) & this.#mask;
    for (;;) {
      const first = this.#slots[slot]!;
      if (first === 0) break;
      const other = this.#asked[first - 1]!;
      if (other.subject === subject && (other.window === window || isSame(other.window, window))) {
        this.#numbers[index] = this.#numbers[first - 1]!;
        return this.#numbers[index]!;
      }
      slot = (slot + 1) & this.#mask;
    }
    this.#count += 1;
    this.#slots[slot] = index + 1;
    this.#numbers[index] = this.#count;
    return this.#count;
  }
}

function isSame(one: CompiledWindow, other: CompiledWindow): boolean {
  return findCode(one).code === findCode(other).code;
}

function lastLetters(text: string): number {
  let hash = text.length;
  for (let i = Math.max(text.length - 8, 0); i < text.length; i++)
    hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash ^ (hash >>> 15);
}
