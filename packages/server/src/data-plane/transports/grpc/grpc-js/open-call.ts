import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { SluiceError } from "sluice";
import type { Caller } from "../../../access/access.ts";
import type { CallBytes, HeldConnection } from "../call-bytes.ts";
import type { Method } from "../method.ts";

/** Overhead of an open call without its headers: the objects of Node and grpc-js. */
const openCallBytes = 8 * 1024;
/** Overhead of a complete message that waits for its handler. */
const messageBytes = 512;
/** Overhead of a part of an incomplete message. The sender chooses how small parts are. */
const partBytes = 256;
/** Most bytes that deflate can make out of one, and the memory of the decoder itself. */
const deflateRatio = 1_032;
const decoderBytes = 64 * 1024;

/** Bytes before a message: whether it is compressed, and its length. */
const headLength = 5;

export interface OpenCallOptions {
  readonly id: string;
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly method: Method;
  readonly caller: Caller;
  readonly held: CallBytes;
  readonly connection: HeldConnection;
  /** Most bytes of a message. */
  readonly maxMessageBytes: number;
  /** Called if the call cannot go on: its message is too large, or its connection holds too much. */
  readonly onTooMuch: (call: OpenCall, error: SluiceError) => void;
  /** Called when a message becomes half received, and when it is complete. */
  readonly onHalfReceived: (call: OpenCall, half: boolean) => void;
  readonly onClose: (call: OpenCall) => void;
}

/** Where a call with several answers writes them. */
export interface Answers {
  write(bytes: Uint8Array, done?: (error?: Error | null) => void): boolean;
}

/**
 * Counts all bytes that one call holds: its request as it arrives, even while grpc-js does not read it, and its answers
 * until they are sent. To see bytes arrive, it wraps `push` of Node's stream.
 */
export class OpenCall {
  readonly id: string;
  readonly stream: ServerHttp2Stream;
  readonly method: Method;
  readonly caller: Caller;
  /** Whether a handler has taken over. The handler then counts the call's status. */
  handled = false;
  /** When the current message became half received, by `performance.now()`. */
  halfSinceMs = 0;
  readonly #held: CallBytes;
  readonly #connection: HeldConnection;
  readonly #options: OpenCallOptions;
  #heldBytes = 0;
  #unsentBytes = 0;
  /** Bytes held by each complete message that its handler has not taken. */
  readonly #untaken: number[] = [];
  /** The current message: bytes of its head so far, what the head says, bytes to come, and bytes held. */
  #headBytes = 0;
  #compressed = false;
  #length = 0;
  #left = 0;
  #partsBytes = 0;
  #run: (() => void) | undefined;
  #over = false;

  constructor(options: OpenCallOptions) {
    this.id = options.id;
    this.stream = options.stream;
    this.method = options.method;
    this.caller = options.caller;
    this.#held = options.held;
    this.#connection = options.connection;
    this.#options = options;
    this.#connection.calls += 1;
    this.#countRequest();
    this.stream.once("close", () => this.#close());
    this.#hold(openCallBytes + countHeaderBytes(options.headers));
  }

  /** Releases the oldest message of a stream, which its handler has taken. A single request is held until its call ends. */
  taken(): void {
    const bytes = this.#untaken.shift();
    if (bytes !== undefined && !this.#over) this.#hold(-bytes);
  }

  /** Counts bytes of an answer that is about to be sent. They are released when the call ends, or by the same number below 0. */
  owe(bytes: number): void {
    if (this.#over) return;
    this.#unsentBytes += bytes;
    this.#connection.unsentBytes += bytes;
    const fits = this.#count(bytes);
    if (bytes < 0) this.#connection.proceedWaiting();
    // What is decided may be charged, so no status may say that it was not.
    else if (!fits) this.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  /** Counts the answers that are written to a stream, each until it is sent. */
  countAnswers(counted: Answers): void {
    const write = counted.write.bind(counted);
    counted.write = (bytes, done) => {
      this.owe(bytes.length);
      return write(bytes, (error) => {
        this.owe(-bytes.length);
        done?.(error);
      });
    };
  }

  /** Runs as soon as few enough answers of the connection are unsent; never if the call ends first. */
  whenRoom(run: () => void): void {
    if (this.#over) return;
    if (this.#connection.hasRoom) {
      run();
      return;
    }
    this.#run = run;
    this.#connection.waiting.add(this);
  }

  proceed(): void {
    this.#run?.();
  }

  #countRequest(): void {
    const { stream } = this;
    const push = stream.push.bind(stream);
    if (this.method.kind !== "stream") this.#setHalf(true);
    stream.push = (chunk: Buffer | null): boolean => {
      if (this.#over || stream.destroyed) return push(chunk);
      if (chunk === null) {
        this.#setHalf(false);
        return push(null);
      }
      // The call is answered, and its client is still sending: drop the bytes, and ask the client to stop. Not before the status has
      // left, which comes after the last answer: without it the call would seem to have failed.
      if (stream.writableFinished) {
        if (hasSentStatus(stream)) stream.close(constants.NGHTTP2_NO_ERROR);
        return true;
      }
      const kept = this.#receive(chunk);
      return stream.closed ? true : push(kept);
    };
  }

  /** Counts a chunk of the request. Returns the buffer to keep. */
  #receive(chunk: Buffer): Buffer {
    const wasHalf = this.#headBytes > 0;
    let grown = 0;
    let begin = 0;
    for (let at = 0; at < chunk.length; ) {
      if (this.#headBytes < headLength) {
        if (this.#headBytes === 0) begin = at;
        this.#readHead(chunk[at]!);
        at += 1;
        if (this.#headBytes === headLength && this.#length > this.#options.maxMessageBytes) {
          this.#refuseMessage();
          return chunk;
        }
      } else {
        const part = Math.min(chunk.length - at, this.#left);
        this.#left -= part;
        at += part;
      }
      if (this.#headBytes === headLength && this.#left === 0) {
        grown += this.#complete();
        begin = at;
      }
    }
    const isHalf = this.#headBytes > 0;
    if (isHalf) {
      const bytes = chunk.length - begin + partBytes;
      this.#partsBytes += bytes;
      grown += bytes;
    }
    if (this.method.kind === "stream" && wasHalf !== isHalf) this.#setHalf(isHalf);
    this.#hold(grown);
    return alone(chunk, isHalf);
  }

  #readHead(byte: number): void {
    if (this.#headBytes === 0) {
      this.#compressed = byte === 1;
      this.#length = 0;
    } else this.#length = this.#length * 256 + byte;
    this.#headBytes += 1;
    this.#left = this.#length;
  }

  /** Returns how many bytes more the message holds now that it is complete. */
  #complete(): number {
    // grpc-js keeps the parts of a message as well as the whole of it, before and after decompression.
    const bytes = messageBytes + 2 * this.#length + (this.#compressed ? this.#inflatedBytes() : 0);
    const more = bytes - this.#partsBytes;
    if (this.method.kind === "stream") this.#untaken.push(bytes);
    this.#headBytes = 0;
    this.#partsBytes = 0;
    return more;
  }

  #inflatedBytes(): number {
    return decoderBytes + 2 * Math.min(this.#length * deflateRatio, this.#options.maxMessageBytes);
  }

  #setHalf(half: boolean): void {
    if (half) this.halfSinceMs = performance.now();
    this.#options.onHalfReceived(this, half);
  }

  #hold(bytes: number): void {
    if (!this.#count(bytes) && bytes > 0) this.#refuse();
  }

  #count(bytes: number): boolean {
    this.#heldBytes += bytes;
    return this.#held.add(this.#connection, bytes);
  }

  #refuse(): void {
    const message =
      "this connection holds as many bytes of requests and unread answers as one may; read answers, or send less at once";
    this.#options.onTooMuch(this, new SluiceError("overloaded", message));
  }

  #refuseMessage(): void {
    const message = `a message of this method has at most ${this.#options.maxMessageBytes} bytes, but this one ${this.#length}`;
    this.#options.onTooMuch(this, new SluiceError("body_too_large", message));
  }

  #close(): void {
    this.#over = true;
    this.#options.onClose(this);
    this.#connection.calls -= 1;
    this.#connection.waiting.delete(this);
    this.#connection.unsentBytes -= this.#unsentBytes;
    this.#held.add(this.#connection, -this.#heldBytes);
    this.#untaken.length = 0;
    if (this.#unsentBytes > 0) this.#connection.proceedWaiting();
  }
}

/** A status comes in trailers, or in the headers of a call that has no answer. */
function hasSentStatus({ sentTrailers, sentHeaders }: ServerHttp2Stream): boolean {
  return sentTrailers !== undefined || sentHeaders?.["grpc-status"] !== undefined;
}

function countHeaderBytes(headers: IncomingHttpHeaders): number {
  let bytes = 0;
  for (const name in headers) bytes += name.length + (headers[name]?.length ?? 0);
  return bytes;
}

/**
 * A copy of a chunk that shares its memory with other frames of the same read, because keeping it would keep all of them. Parts
 * of incomplete messages may be kept for long, so they get memory outside of Node's pool too.
 */
function alone(chunk: Buffer, isPart: boolean): Buffer {
  if (chunk.length * 4 >= chunk.buffer.byteLength * 3) return chunk;
  const copy = isPart ? Buffer.allocUnsafeSlow(chunk.length) : Buffer.allocUnsafe(chunk.length);
  copy.set(chunk);
  return copy;
}
