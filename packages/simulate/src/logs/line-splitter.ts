/** Receives a line: `bytes` from `start` up to `end`, valid until it returns. */
export type OnLine = (bytes: Buffer, start: number, end: number) => void;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** Longer lines are no log lines. */
export const maxLineBytes: number = 1 << 20;

/** Lines from chunks of bytes that end anywhere. Empty lines are left out, and so are lines beyond `maxLineBytes`. */
export class LineSplitter {
  readonly #onLine: OnLine;
  readonly #onTooLong: () => void;
  #carried: Buffer[] = [];
  #carriedBytes = 0;
  #isSkipping = false;

  constructor(onLine: OnLine, onTooLong: () => void) {
    this.#onLine = onLine;
    this.#onTooLong = onTooLong;
  }

  push(chunk: Buffer): void {
    let start = 0;
    let end = chunk.indexOf(lineFeed);
    if (end !== -1 && (this.#carriedBytes > 0 || this.#isSkipping)) {
      this.#carry(chunk.subarray(0, end));
      this.finish();
      start = end + 1;
      end = chunk.indexOf(lineFeed, start);
    }
    while (end !== -1) {
      this.#emit(chunk, start, end);
      start = end + 1;
      end = chunk.indexOf(lineFeed, start);
    }
    if (start < chunk.length) this.#carry(chunk.subarray(start));
  }

  /** The last line may have no end. */
  finish(): void {
    if (this.#carriedBytes > 0) {
      const line = Buffer.concat(this.#carried, this.#carriedBytes);
      this.#carried = [];
      this.#carriedBytes = 0;
      this.#emit(line, 0, line.length);
    }
    this.#isSkipping = false;
  }

  #carry(part: Buffer): void {
    if (this.#isSkipping) return;
    // The chunk may be used again by the stream that it comes from.
    this.#carried.push(Buffer.from(part));
    this.#carriedBytes += part.length;
    if (this.#carriedBytes <= maxLineBytes) return;
    this.#carried = [];
    this.#carriedBytes = 0;
    this.#isSkipping = true;
    this.#onTooLong();
  }

  #emit(bytes: Buffer, start: number, end: number): void {
    const stop = end > start && bytes[end - 1] === carriageReturn ? end - 1 : end;
    if (stop > start) this.#onLine(bytes, start, stop);
  }
}
