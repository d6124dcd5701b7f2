import { readUint32 } from "./frames.ts";
import { messageHeadLength } from "./stream.ts";

/** What a reader says of the messages it finds. */
export interface MessageSink {
  /** A whole message. It is in `bytes` only until this returns, unless `isCopy`. Returns false if nothing more is wanted. */
  message(bytes: Buffer, isCopy: boolean): boolean;
  /** A message that is too large, by its head. */
  tooLarge(length: number): void;
  /** A message that says it is compressed. */
  compressed(): void;
}

/**
 * Finds the messages in the body of a call: each has a byte that says whether it is compressed, four with its length, and its bytes.
 * One that arrives whole is handed on where it is. The parts of one that does not are put together in a buffer that grows with what
 * has arrived, never with what was announced.
 */
export class MessageReader {
  readonly #sink: MessageSink;
  readonly #maxBytes: number;
  readonly #head = new Uint8Array(messageHeadLength);
  #headBytes = 0;
  #length = 0;
  #part: Buffer = noBytes;
  #partBytes = 0;
  #stopped = false;

  constructor(sink: MessageSink, maxBytes: number) {
    this.#sink = sink;
    this.#maxBytes = maxBytes;
  }

  /** Whether a message has begun and is not complete. */
  get isHalf(): boolean {
    return this.#headBytes > 0;
  }

  /** Bytes that are kept for it. */
  get heldBytes(): number {
    return this.#part.length;
  }

  /** Drops what is kept, and all that follows. */
  stop(): void {
    this.#stopped = true;
    this.#part = noBytes;
    this.#headBytes = 0;
  }

  read(bytes: Buffer, start: number, end: number): void {
    let at = start;
    while (!this.#stopped && (at < end || this.#isComplete())) {
      if (this.#headBytes < messageHeadLength) at = this.#readHead(bytes, at, end);
      else if (this.#partBytes === 0 && end - at >= this.#length) {
        const from = at;
        at += this.#length;
        this.#headBytes = 0;
        if (!this.#sink.message(bytes.subarray(from, at), false)) this.stop();
      } else at = this.#readPart(bytes, at, end);
    }
  }

  /** A message without bytes is complete with its head. */
  #isComplete(): boolean {
    return this.#headBytes === messageHeadLength && this.#partBytes === this.#length;
  }

  #readHead(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end && this.#headBytes < messageHeadLength) this.#head[this.#headBytes++] = bytes[at++]!;
    if (this.#headBytes < messageHeadLength) return at;
    this.#length = readUint32(this.#head, 1);
    this.#partBytes = 0;
    if (this.#head[0] !== 0) {
      this.stop();
      this.#sink.compressed();
    } else if (this.#length > this.#maxBytes) {
      this.stop();
      this.#sink.tooLarge(this.#length);
    }
    return at;
  }

  #readPart(bytes: Buffer, at: number, end: number): number {
    const part = Math.min(end - at, this.#length - this.#partBytes);
    this.#grow(this.#partBytes + part);
    bytes.copy(this.#part, this.#partBytes, at, at + part);
    this.#partBytes += part;
    if (this.#partBytes === this.#length) {
      const message = this.#part.subarray(0, this.#length);
      this.#part = noBytes;
      this.#headBytes = 0;
      this.#partBytes = 0;
      if (!this.#sink.message(message, true)) this.stop();
    }
    return at + part;
  }

  #grow(bytes: number): void {
    if (bytes <= this.#part.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.min(Math.max(bytes, 2 * this.#part.length, 256), this.#length));
    this.#part.copy(larger, 0, 0, this.#partBytes);
    this.#part = larger;
  }
}

const noBytes = Buffer.alloc(0);
