import { ConnectionError, ErrorCode } from "./frames.ts";
import { CompressionError } from "./hpack/compression-error.ts";
import { type FieldSink, HpackDecoder } from "./hpack/decoder.ts";
import { type RequestHead, RequestHeadReader, TrailerReader } from "./request-head.ts";

/** Most bytes of a header block as it is sent, and most frames that continue it. */
const maxBlockBytes = 64 * 1024;
const maxContinuations = 16;

/** How many blocks of a connection are remembered, and how long they may be. Most clients call two or three methods. */
const maxRemembered = 4;
const maxRememberedBytes = 512;

interface Remembered {
  readonly block: Buffer;
  readonly head: RequestHead;
}

/**
 * Turns the header blocks of one connection into heads of requests.
 *
 * A client that makes the same call again sends the same bytes again, and those are recognized without being decoded. What bytes
 * mean depends on the dynamic table; so a block is remembered only if decoding it left the table as it was, and all are forgotten
 * when another block changes it.
 */
export class HeaderBlocks {
  readonly #decoder = new HpackDecoder();
  readonly #heads = new RequestHeadReader();
  readonly #trailers = new TrailerReader();
  readonly #remembered: Remembered[] = [];
  #rememberedBytes = 0;
  /** Where the next block is put once there are enough. */
  #next = 0;
  #parts: Buffer[] = [];
  #partsBytes = 0;

  /** What all this keeps in memory. */
  get heldBytes(): number {
    return this.#decoder.table.bytes + this.#rememberedBytes + this.#partsBytes;
  }

  /** Keeps a part of a block whose end has not come. Throws `ConnectionError` if it has too many parts, or too large ones. */
  addPart(bytes: Buffer, start: number, end: number): void {
    this.#partsBytes += end - start;
    if (this.#partsBytes > maxBlockBytes || this.#parts.length > maxContinuations)
      throw new ConnectionError(ErrorCode.enhanceYourCalm, "a header block is too long, or in too many parts");
    this.#parts.push(Buffer.from(bytes.subarray(start, end)));
  }

  /** The head of a request, from the last part of its block and those before. */
  readHead(bytes: Buffer, start: number, end: number): RequestHead {
    // A part may have no bytes.
    if (this.#parts.length > 0) {
      const block = this.#join(bytes, start, end);
      return this.#decodeHead(block, 0, block.length);
    }
    const known = this.#find(bytes, start, end);
    if (known !== undefined) return known;
    const { changes } = this.#decoder.table;
    const head = this.#decodeHead(bytes, start, end);
    if (
      changes === this.#decoder.table.changes &&
      end - start <= maxRememberedBytes &&
      !head.malformed &&
      !head.tooLarge
    )
      this.#remember({ block: Buffer.from(bytes.subarray(start, end)), head });
    return head;
  }

  /** Reads trailers; returns false if they are malformed. */
  readTrailers(bytes: Buffer, start: number, end: number): boolean {
    const block = this.#join(bytes, start, end);
    this.#trailers.start();
    this.#decode(block, 0, block.length, this.#trailers);
    return !this.#trailers.malformed;
  }

  #decodeHead(bytes: Buffer, start: number, end: number): RequestHead {
    this.#heads.start();
    this.#decode(bytes, start, end, this.#heads);
    return this.#heads.finish();
  }

  #decode(bytes: Buffer, start: number, end: number, sink: FieldSink): void {
    const { table } = this.#decoder;
    const { changes } = table;
    try {
      this.#decoder.decode(bytes, start, end, sink);
      if (table.changes !== changes) this.#forget();
    } catch (error) {
      if (!(error instanceof CompressionError)) throw error;
      throw new ConnectionError(ErrorCode.compressionError, error.message);
    }
  }

  #join(bytes: Buffer, start: number, end: number): Buffer {
    const last = bytes.subarray(start, end);
    if (this.#parts.length === 0) return last;
    if (this.#partsBytes + last.length > maxBlockBytes)
      throw new ConnectionError(ErrorCode.enhanceYourCalm, "a header block is too long");
    const block = Buffer.concat([...this.#parts, last]);
    this.#parts = [];
    this.#partsBytes = 0;
    return block;
  }

  #find(bytes: Buffer, start: number, end: number): RequestHead | undefined {
    const remembered = this.#remembered;
    for (let i = 0; i < remembered.length; i += 1) {
      const { block, head } = remembered[i]!;
      if (block.length === end - start && isSame(block, bytes, start)) return head;
    }
    return undefined;
  }

  #remember(one: Remembered): void {
    const place = this.#next;
    this.#next = (place + 1) % maxRemembered;
    this.#rememberedBytes +=
      countRememberedBytes(one) -
      (this.#remembered[place] === undefined ? 0 : countRememberedBytes(this.#remembered[place]));
    this.#remembered[place] = one;
  }

  #forget(): void {
    this.#remembered.length = 0;
    this.#rememberedBytes = 0;
    this.#next = 0;
  }
}

function countRememberedBytes({ block, head }: Remembered): number {
  return block.length + head.bytes;
}

function isSame(block: Buffer, bytes: Buffer, start: number): boolean {
  for (let i = block.length - 1; i >= 0; i -= 1) if (block[i] !== bytes[start + i]) return false;
  return true;
}
