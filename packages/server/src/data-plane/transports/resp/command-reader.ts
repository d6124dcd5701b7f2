import type { Arguments } from "./arguments.ts";
import { decodeText } from "./decode-text.ts";
import { ProtocolError } from "./protocol-error.ts";
import { splitInline } from "./split-inline.ts";

/** The most bytes and the most arguments of a command: 32 dimensions, 32 policies and every option fit. */
export const maxCommandBytes: number = 64 * 1024;
export const maxArguments = 100;
/** The most bytes of a command from a client that has not authenticated yet: AUTH and HELLO fit, and most checks. */
export const maxStrangerBytes = 4_096;

const star = 0x2a;
const dollar = 0x24;
const cr = 0x0d;
const lf = 0x0a;
const minus = 0x2d;
const zero = 0x30;
const equalsSign = 0x3d;
const nothing: Buffer = Buffer.alloc(0);
/** Longer numbers are no allowed length. */
const maxDigits = 10;

/**
 * Finds commands in the bytes that arrive, wherever they are cut: arrays of bulk strings, and lines as people type
 * them. A command that arrived in one piece is read in place. Arguments are positions in it, decoded on demand.
 */
export class CommandReader implements Arguments {
  /** Number of arguments of the last command read. */
  count = 0;
  readonly #starts = new Int32Array(maxArguments);
  readonly #ends = new Int32Array(maxArguments);
  /** The buffer that the arguments are positions in. */
  #source: Buffer = nothing;
  #received: Buffer = nothing;
  #at = 0;
  #end = 0;
  /** Whether we may write into `#received`. */
  #own = false;
  /** How many bytes must be there from `#at` before another look can find anything. */
  #needs = 1;
  /** The last number read, and where it ended. */
  #number = 0;
  #isInline = false;

  /** Adds received bytes. */
  push(chunk: Buffer): void {
    const left = this.#end - this.#at;
    if (left === 0) {
      this.#received = chunk;
      this.#own = false;
      this.#at = 0;
      this.#end = chunk.length;
      return;
    }
    if (!this.#own || this.#end + chunk.length > this.#received.length) {
      // Twice as much as needed: a command that comes byte by byte is not copied for each of them.
      this.#move(left + chunk.length);
    }
    chunk.copy(this.#received, this.#end);
    this.#end += chunk.length;
  }

  /** Bytes that are kept of what arrived. */
  get heldBytes(): number {
    return this.#received.length;
  }

  /** Whether an incomplete command is left. */
  get isHalfway(): boolean {
    return this.#end > this.#at;
  }

  /** Whether the command was typed as a line. */
  get isInline(): boolean {
    return this.#isInline;
  }

  /**
   * Reads the next command, of at most `maxBytes`. False if it is incomplete; throws `ProtocolError` if it never will
   * be complete.
   */
  next(maxBytes: number = maxCommandBytes): boolean {
    while (this.#end - this.#at >= this.#needs) {
      this.#needs = 1;
      const isArray = this.#received[this.#at] === star;
      const end = isArray ? this.#readArray(maxBytes) : this.#readLine(maxBytes);
      if (end < 0) {
        this.#keepRest();
        return false;
      }
      this.#at = end;
      // Empty lines and empty arrays are not commands.
      if (this.count > 0) {
        this.#isInline = !isArray;
        return true;
      }
    }
    if (this.#at === this.#end) this.#letGo();
    return false;
  }

  text(index: number, from = 0, to?: number): string {
    const start = this.#starts[index]!;
    return decodeText(this.#source, start + from, to === undefined ? this.#ends[index]! : start + to);
  }

  findEquals(index: number): number {
    const source = this.#source;
    const start = this.#starts[index]!;
    const end = this.#ends[index]!;
    for (let i = start; i < end; i++) if (source[i] === equalsSign) return i - start;
    return -1;
  }

  bytes(index: number): string {
    return this.#source.toString("latin1", this.#starts[index], this.#ends[index]);
  }

  span(first: number, last: number): string {
    return this.#source.toString("latin1", this.#starts[first], this.#ends[last]);
  }

  /** A number that distinguishes names, ignoring case, and seldom confuses two. */
  nameHash(): number {
    const source = this.#source;
    const end = this.#ends[0]!;
    let hash = 0;
    for (let i = this.#starts[0]!; i < end; i++) hash = (Math.imul(hash, 31) + (source[i]! | 0x20)) | 0;
    return hash;
  }

  /** Whether the command has this name, which is given in lower case. */
  isNamed(name: string): boolean {
    const source = this.#source;
    const start = this.#starts[0]!;
    if (this.#ends[0]! - start !== name.length) return false;
    for (let i = 0; i < name.length; i++) {
      const byte = source[start + i]!;
      if ((byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte) !== name.charCodeAt(i)) return false;
    }
    return true;
  }

  /** Where the array that begins here ends; −1 if that is not known yet. */
  #readArray(maxBytes: number): number {
    const begin = this.#at;
    const received = this.#received;
    const starts = this.#starts;
    const ends = this.#ends;
    let at = this.#readNumber(begin + 1, "invalid multibulk length");
    if (at < 0) return -1;
    const count = this.#number;
    this.count = 0;
    if (count <= 0) return at;
    if (count > maxArguments) throw new ProtocolError("invalid multibulk length");
    for (let i = 0; i < count; i++) {
      if (at >= this.#end) return this.#wait(at + 1);
      if (received[at] !== dollar) throw new ProtocolError(`expected '$', got '${printable(received[at]!)}'`);
      at = this.#readNumber(at + 1, "invalid bulk length");
      if (at < 0) return -1;
      const length = this.#number;
      if (length < 0 || length > maxCommandBytes) throw new ProtocolError("invalid bulk length");
      const end = at + length;
      if (end + 2 - begin > maxBytes) throw tooLong(maxBytes);
      if (end + 2 > this.#end) return this.#wait(end + 2);
      if (received[end] !== cr || received[end + 1] !== lf)
        throw new ProtocolError("expected CRLF at the end of a bulk string");
      starts[i] = at;
      ends[i] = end;
      at = end + 2;
    }
    this.#source = received;
    this.count = count;
    return at;
  }

  /**
   * Reads a whole number and the end of its line into `#number`, and returns where to continue; −1 if it is incomplete.
   */
  #readNumber(start: number, problem: string): number {
    const received = this.#received;
    const negative = received[start] === minus && start < this.#end;
    const first = negative ? start + 1 : start;
    let value = 0;
    let at = first;
    for (; at < this.#end; at++) {
      const digit = received[at]! - zero;
      if (digit < 0 || digit > 9) break;
      if (at - first >= maxDigits) throw new ProtocolError(problem);
      value = value * 10 + digit;
    }
    if (at >= this.#end) return this.#wait(at + 1);
    if (at === first || received[at] !== cr) throw new ProtocolError(problem);
    if (at + 1 >= this.#end) return this.#wait(at + 2);
    if (received[at + 1] !== lf) throw new ProtocolError(problem);
    this.#number = negative ? -value : value;
    return at + 2;
  }

  #readLine(maxBytes: number): number {
    const end = this.#received.subarray(0, this.#end).indexOf(lf, this.#at);
    const length = (end < 0 ? this.#end : end + 1) - this.#at;
    if (length > maxBytes) throw tooLong(maxBytes);
    if (end < 0) return this.#wait(this.#end + 1);
    this.#useWords(splitInline(this.#received.toString("latin1", this.#at, end)));
    return end + 1;
  }

  /** The words of a line, as if they had been sent one by one. */
  #useWords(words: readonly string[]): void {
    if (words.length > maxArguments) throw new ProtocolError("too many words in an inline request");
    // No array has spaces between its bulk strings, so no `span` of one equals that of a line.
    this.#source = Buffer.from(words.join(" "), "latin1");
    this.count = words.length;
    let at = 0;
    for (const [i, word] of words.entries()) {
      this.#starts[i] = at;
      this.#ends[i] = at + word.length;
      at += word.length + 1;
    }
  }

  /** Nothing is kept of complete commands: connections are many, and idle for long. */
  #letGo(): void {
    this.#received = nothing;
    this.#source = nothing;
    this.#own = false;
    this.#at = 0;
    this.#end = 0;
  }

  /** So that a few bytes do not keep alive the large buffer that they arrived in. */
  #keepRest(): void {
    this.#source = nothing;
    const left = this.#end - this.#at;
    if (this.#received.length > 2 * left + 1024) this.#move(left);
  }

  /** Copies what is left into a buffer of our own, with room for twice as many bytes. */
  #move(bytes: number): void {
    const room = Buffer.allocUnsafeSlow(Math.max(1024, 2 * bytes));
    this.#end = this.#received.copy(room, 0, this.#at, this.#end);
    this.#at = 0;
    this.#received = room;
    this.#own = true;
  }

  #wait(untilReceived: number): number {
    this.#needs = untilReceived - this.#at;
    return -1;
  }
}

function tooLong(maxBytes: number): ProtocolError {
  const when = maxBytes < maxCommandBytes ? " before AUTH" : "";
  return new ProtocolError(`a command has at most ${maxBytes} bytes${when}`);
}

function printable(byte: number): string {
  return byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
}
