import { ConnectionError, ErrorCode, frameHeadLength, maxPayload, readUint31 } from "./frames.ts";

/** Takes frames as they arrive. */
export interface FrameSink {
  /**
   * A whole frame; its payload is in `bytes` from `start` to `end`, which may be overwritten once this returns. Returns whether
   * the next frame may follow at once.
   */
  frame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean;
}

/**
 * Finds frames in the bytes of a connection. A frame that arrives in one piece is read where it is; of one that does not, the
 * parts are put together in a buffer of its size, of which there is at most one.
 */
export class FrameReader {
  readonly #sink: FrameSink;
  #partial: Buffer | undefined;
  #partialLength = 0;
  readonly #head = Buffer.alloc(frameHeadLength);

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Bytes that are kept for a frame of which only a part has arrived. */
  get heldBytes(): number {
    return this.#partial === undefined ? 0 : this.#partial.length;
  }

  /**
   * Reads `chunk` from `at` until its end, or until the sink wants no more; returns where the unread rest begins. Throws
   * `ConnectionError` for a frame that is too large, as soon as its head says so.
   */
  read(chunk: Buffer, at: number): number {
    let from = at;
    if (this.#partialLength > 0) {
      from = this.#complete(chunk, from);
      if (this.#partialLength > 0) return from;
      if (this.#stopped) {
        this.#stopped = false;
        return from;
      }
    }
    const end = chunk.length;
    while (end - from >= frameHeadLength) {
      const length = readLength(chunk, from);
      const start = from + frameHeadLength;
      if (start + length > end) break;
      from = start + length;
      if (!this.#sink.frame(chunk[start - 6]!, chunk[start - 5]!, readUint31(chunk, start - 4), chunk, start, from))
        return from;
    }
    if (from < end) from = this.#keep(chunk, from);
    return from;
  }

  #stopped = false;

  /** Adds to the frame that has begun, and hands it on if it is whole. Returns where the next frame begins. */
  #complete(chunk: Buffer, at: number): number {
    let from = at;
    if (this.#partial === undefined) {
      from = this.#fill(this.#head, chunk, from, frameHeadLength);
      if (this.#partialLength < frameHeadLength) return from;
      this.#partial = allocate(this.#head, 0);
      this.#head.copy(this.#partial);
    }
    const frame = this.#partial;
    from = this.#fill(frame, chunk, from, frame.length);
    if (this.#partialLength < frame.length) return from;
    this.#partial = undefined;
    this.#partialLength = 0;
    const { length } = frame;
    this.#stopped = !this.#sink.frame(frame[3]!, frame[4]!, readUint31(frame, 5), frame, frameHeadLength, length);
    return from;
  }

  #fill(target: Buffer, chunk: Buffer, at: number, wanted: number): number {
    const part = Math.min(chunk.length - at, wanted - this.#partialLength);
    chunk.copy(target, this.#partialLength, at, at + part);
    this.#partialLength += part;
    return at + part;
  }

  #keep(chunk: Buffer, at: number): number {
    if (chunk.length - at >= frameHeadLength) this.#partial = allocate(chunk, at);
    return this.#fill(this.#partial ?? this.#head, chunk, at, chunk.length - at);
  }
}

function readLength(bytes: Buffer, at: number): number {
  const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
  if (length > maxPayload)
    throw new ConnectionError(ErrorCode.frameSizeError, `a frame has ${length} bytes, and may have ${maxPayload}`);
  return length;
}

function allocate(bytes: Buffer, at: number): Buffer {
  return Buffer.allocUnsafeSlow(frameHeadLength + readLength(bytes, at));
}
