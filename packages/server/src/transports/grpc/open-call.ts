import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { SluiceError } from "sluice";
import type { Caller } from "../../access/access.ts";
import type { HeldBytes, HeldConnection } from "./held-bytes.ts";
import type { Method } from "./method.ts";

/** What a call costs by being open, beside its headers: Node's stream, and what grpc-js keeps with it. */
const openCallBytes = 8 * 1024;
/** What a whole message costs beside its bytes while it waits to be taken. */
const messageBytes = 512;
/** What a part of a message costs beside its bytes: senders choose how small they cut it. */
const partBytes = 256;
/** Deflate makes at most so many bytes of one; the decoder itself has its window and its buffers. */
const deflateRatio = 1_032;
const decoderBytes = 64 * 1024;

/** A connection with this much of answers to send begins no further calls until some of it is sent. */
const fullUnsentBytes = 8 * 1024 * 1024;

/** Bytes before a message: whether it is compressed, and its length. */
const headLength = 5;

export interface OpenCallOptions {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly method: Method;
  readonly caller: Caller;
  readonly held: HeldBytes;
  readonly connection: HeldConnection;
  /** Most bytes of a message. */
  readonly maxMessageBytes: number;
  /** Called where the call cannot go on: its message is too large, or its connection holds too much. */
  readonly onTooMuch: (call: OpenCall, error: SluiceError) => void;
  /** Called when a message begins to be half received, and when it no longer is. */
  readonly onHalfReceived: (call: OpenCall, half: boolean) => void;
}

/** Where answers are written: Node's stream for a single one, the stream of grpc-js for many, because they queue up in it. */
interface Answers {
  write(bytes: Buffer, done?: (error?: Error | null) => void): boolean;
}

/**
 * Keeps count of all that one call holds, from its headers to its end: bytes as they arrive, whether or not grpc-js reads
 * them yet, and answers until they are sent. It stands in between, in `push` of Node's stream and in `write`.
 */
export class OpenCall {
  readonly stream: ServerHttp2Stream;
  readonly method: Method;
  readonly caller: Caller;
  /** Since when the message that arrives is half received, by `performance.now()`. */
  halfSinceMs = 0;
  readonly #held: HeldBytes;
  readonly #connection: HeldConnection;
  readonly #options: OpenCallOptions;
  #heldBytes = 0;
  #unsentBytes = 0;
  /** What each whole message holds that has not been taken. */
  readonly #untaken: number[] = [];
  /** Of the message that arrives: bytes of its head that are there, what the head says, what is left, what it holds. */
  #headBytes = 0;
  #compressed = false;
  #length = 0;
  #left = 0;
  #partsBytes = 0;
  #run: (() => void) | undefined;
  #over = false;

  constructor(options: OpenCallOptions) {
    this.stream = options.stream;
    this.method = options.method;
    this.caller = options.caller;
    this.#held = options.held;
    this.#connection = options.connection;
    this.#options = options;
    this.#connection.calls += 1;
    this.#countRequest();
    this.stream.once("close", () => this.#close());
    this.#hold(openCallBytes + bytesOf(options.headers));
  }

  get over(): boolean {
    return this.#over;
  }

  /** A message was taken out of a stream of messages, and is held no more. A single message is held until its call ends. */
  taken(): void {
    const bytes = this.#untaken.shift();
    if (bytes !== undefined && !this.#over) this.#hold(-bytes);
  }

  /** Counts the answers that are written from now on. */
  countAnswers(answers: object): void {
    const counted = answers as Answers;
    const write = counted.write.bind(answers);
    counted.write = (bytes, done) => {
      if (!this.#over) this.#owe(bytes.length);
      return write(bytes, (error) => {
        if (!this.#over) this.#owe(-bytes.length);
        done?.(error);
      });
    };
  }

  /** Runs when the connection's answers have gone out far enough, at once where they have; never, where the call ends before. */
  whenRoom(run: () => void): void {
    if (this.#over) return;
    if (this.#connection.unsentBytes < fullUnsentBytes) {
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
      // The call is answered, and its client goes on sending: what comes is not kept, and the client is asked to stop.
      if (stream.writableFinished) {
        stream.close(constants.NGHTTP2_NO_ERROR);
        return true;
      }
      const kept = this.#receive(chunk);
      return stream.closed ? true : push(kept);
    };
  }

  /** Counts a piece of the request. Returns what is to be kept of it. */
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

  /** Returns by how much more the message holds now that it is whole. */
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
    this.halfSinceMs = performance.now();
    this.#options.onHalfReceived(this, half);
  }

  #hold(bytes: number): void {
    this.#heldBytes += bytes;
    if (!this.#held.add(this.#connection, bytes) && bytes > 0) this.#refuse();
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

  #owe(bytes: number): void {
    this.#unsentBytes += bytes;
    this.#connection.unsentBytes += bytes;
    this.#hold(bytes);
    if (bytes < 0) proceedWaiting(this.#connection);
  }

  #close(): void {
    this.#over = true;
    this.#options.onHalfReceived(this, false);
    this.#connection.calls -= 1;
    this.#connection.waiting.delete(this);
    this.#connection.unsentBytes -= this.#unsentBytes;
    this.#held.add(this.#connection, -this.#heldBytes);
    this.#untaken.length = 0;
    if (this.#unsentBytes > 0) proceedWaiting(this.#connection);
  }
}

function bytesOf(headers: IncomingHttpHeaders): number {
  let bytes = 0;
  for (const name in headers) bytes += name.length + (headers[name]?.length ?? 0);
  return bytes;
}

/** Lets calls begin that wait for answers to be sent, the first ones first. */
function proceedWaiting(connection: HeldConnection): void {
  for (const call of connection.waiting) {
    if (connection.unsentBytes >= fullUnsentBytes) return;
    connection.waiting.delete(call);
    call.proceed();
  }
}

/**
 * The bytes without those that were read together with them, of this call and of others, which they would keep from being freed. Parts
 * of a message may stay for long, so they do not share memory with anything.
 */
function alone(chunk: Buffer, isPart: boolean): Buffer {
  if (chunk.length * 4 >= chunk.buffer.byteLength * 3) return chunk;
  const copy = isPart ? Buffer.allocUnsafeSlow(chunk.length) : Buffer.allocUnsafe(chunk.length);
  copy.set(chunk);
  return copy;
}
