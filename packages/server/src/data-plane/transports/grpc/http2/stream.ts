import { InPlaceWriter, type PlainWriter } from "../in-place-writer.ts";
import { type ErrorCode, Flag, FrameType, frameHeadLength, maxPayload, writeFrameHead, writeUint32 } from "./frames.ts";
import type { Output } from "./output.ts";

/** What a stream needs of its connection. */
export interface StreamCarrier {
  readonly output: Output;
  /** How many bytes of DATA the client still takes, on all streams together. */
  sendWindow: number;
  /** Writes a header block, in one frame. */
  writeHeaders(streamId: number, block: Uint8Array, isLast: boolean): void;
  writeReset(streamId: number, code: ErrorCode): void;
  writeWindowUpdate(streamId: number, bytes: number): void;
  /** Something was written: it leaves at the end of this turn. */
  touch(): void;
  /** A stream has bytes to send, and cannot send them now. */
  block(stream: Stream): void;
  /** A stream was answered before its request was complete. */
  answeredEarly(stream: Stream): void;
  /** A stream is over. */
  remove(stream: Stream): void;
  /** Bytes of answers that wait to be sent; below 0 once they are. */
  owe(stream: Stream, bytes: number): void;
}

/** Takes what a client sends on one stream. */
export interface StreamReceiver {
  /** A part of the body, which is in `bytes` only until this returns. `isLast`: nothing follows. */
  data(bytes: Buffer, start: number, end: number, isLast: boolean): void;
  /** Looks at the clock. */
  tick(nowMs: number): void;
  /** Called once, when both ends are done with the stream, or either has reset it. */
  closed(): void;
}

/** Bytes of a body that a client may send before it gets a WINDOW_UPDATE. */
export const receiveWindow: number = 256 * 1024;

interface Unsent {
  readonly bytes: Uint8Array;
  readonly sent: (() => void) | undefined;
}

/** Bytes in front of a gRPC message: whether it is compressed, and its length. */
export const messageHeadLength = 5;

/**
 * One request and its answer.
 *
 *     open ──the client is done──► answering ──we are done──► over
 *       └────we are done first────► answered early ──reset, at the end of the turn──► over
 *
 * Answers leave at once if both windows, the stream's and the connection's, and the kernel have room. Otherwise they wait here, in
 * order, and go on when the connection says so.
 */
export class Stream {
  readonly id: number;
  readonly #carrier: StreamCarrier;
  receiver: StreamReceiver | undefined;
  /** How many bytes the client still takes; below 0 after it has made its window smaller. */
  sendWindow: number;
  /** How many bytes the client may still send. */
  receiveLeft: number = receiveWindow;
  /** Bytes that were taken, and not yet announced to the client. */
  #taken = 0;
  /** Bytes of the body that are still to come, if the request said how many there are. */
  contentLeft: number | undefined;
  remoteEnded = false;
  localEnded = false;
  over = false;
  #headersSent = false;
  readonly #unsent: Unsent[] = [];
  #unsentAt = 0;
  #trailers: Uint8Array | undefined;
  /** Since when it has had bytes that it could not send any of. */
  blockedSinceMs = 0;

  constructor(id: number, carrier: StreamCarrier, sendWindow: number) {
    this.id = id;
    this.#carrier = carrier;
    this.sendWindow = sendWindow;
  }

  get headersSent(): boolean {
    return this.#headersSent;
  }

  /** Whether it has something to send, and waits for room. */
  get isBlocked(): boolean {
    return this.#unsent.length > 0;
  }

  /** Sends the headers of an answer; `isLast` if that is all there is. */
  sendHeaders(block: Uint8Array, isLast: boolean): void {
    if (this.over || this.#headersSent) return;
    this.#headersSent = true;
    this.#carrier.writeHeaders(this.id, block, isLast);
    if (isLast) this.#endLocal();
  }

  /** Sends bytes of the body. `sent` is called when all of them have left. */
  sendData(bytes: Uint8Array, sent?: () => void): void {
    if (this.over || this.localEnded) return;
    this.#unsent.push({ bytes, sent });
    this.#carrier.owe(this, bytes.length);
    if (this.#unsent.length === 1) {
      this.pump();
      if (this.isBlocked) this.#carrier.block(this);
    }
  }

  /** Ends the answer, after what waits to be sent. */
  sendTrailers(block: Uint8Array): void {
    if (this.over || this.localEnded || this.#trailers !== undefined) return;
    if (this.isBlocked) {
      this.#trailers = block;
      return;
    }
    this.#carrier.writeHeaders(this.id, block, true);
    this.#endLocal();
  }

  /** Ends the answer without trailers, after what waits to be sent. */
  sendEnd(): void {
    if (this.over || this.localEnded || this.#trailers !== undefined) return;
    this.#trailers = noTrailers;
    if (this.isBlocked) return;
    const { output } = this.#carrier;
    const at = output.reserve(frameHeadLength);
    output.at = writeFrameHead(output.bytes, at, 0, FrameType.data, Flag.endStream, this.id);
    this.#carrier.touch();
    this.#endLocal();
  }

  /**
   * A whole answer of one message. The usual case, that everything fits, is written in one go. Returns whether it was; otherwise
   * the caller sends the parts.
   */
  sendWhole(headers: Uint8Array, message: Uint8Array, trailers: Uint8Array): boolean {
    const length = messageHeadLength + message.length;
    const carrier = this.#carrier;
    const { output } = carrier;
    if (length > maxPayload || length > this.sendWindow || length > carrier.sendWindow || output.isFull) return false;
    if (this.#headersSent || this.over || this.isBlocked) return false;
    this.#headersSent = true;
    carrier.writeHeaders(this.id, headers, false);
    let at = output.reserve(frameHeadLength + length);
    const { bytes } = output;
    at = writeFrameHead(bytes, at, length, FrameType.data, 0, this.id);
    bytes[at] = 0;
    at = writeUint32(bytes, at + 1, message.length);
    bytes.set(message, at);
    output.at = at + message.length;
    this.sendWindow -= length;
    carrier.sendWindow -= length;
    carrier.writeHeaders(this.id, trailers, true);
    this.#endLocal();
    return true;
  }

  /**
   * The same, with a message that `write` puts where it is sent from. Returns false if it does not fit there: then the caller
   * sends the message, after the headers if those have left.
   */
  sendWritten<T>(
    headers: Uint8Array,
    response: T,
    write: (response: T, writer: PlainWriter) => void,
    trailers: Uint8Array,
  ): boolean {
    const carrier = this.#carrier;
    const { output } = carrier;
    const most = Math.min(maxWritten, this.sendWindow, carrier.sendWindow);
    if (most < maxWritten || output.isFull || this.#headersSent || this.over || this.isBlocked) return false;
    // Room for all three frames: nothing moves while the message is written.
    output.reserve(maxWritten + headers.length + 2 * frameHeadLength + 1);
    this.#headersSent = true;
    carrier.writeHeaders(this.id, headers, false);
    const { bytes, at } = output;
    const start = at + frameHeadLength + messageHeadLength;
    inPlace.begin(bytes, start, at + frameHeadLength + maxWritten);
    try {
      write(response, inPlace);
    } catch (error) {
      if (error instanceof RangeError) return false;
      throw error;
    }
    const length = inPlace.at - start + messageHeadLength;
    const messageAt = writeFrameHead(bytes, at, length, FrameType.data, 0, this.id);
    bytes[messageAt] = 0;
    writeUint32(bytes, messageAt + 1, length - messageHeadLength);
    output.at = inPlace.at;
    this.sendWindow -= length;
    carrier.sendWindow -= length;
    carrier.writeHeaders(this.id, trailers, true);
    this.#endLocal();
    return true;
  }

  /** Sends as much as there is room for. Returns whether it sent anything. */
  pump(): boolean {
    const carrier = this.#carrier;
    const { output } = carrier;
    let progress = false;
    while (this.#unsent.length > 0 && !this.over) {
      const { bytes, sent } = this.#unsent[0]!;
      const left = bytes.length - this.#unsentAt;
      const part = Math.min(left, maxPayload, this.sendWindow, carrier.sendWindow);
      if (left > 0 && (part <= 0 || output.isFull)) break;
      const isWhole = part === left;
      const isEnd = isWhole && this.#unsent.length === 1 && this.#trailers === noTrailers;
      const at = output.reserve(frameHeadLength + part);
      const start = writeFrameHead(output.bytes, at, part, FrameType.data, isEnd ? Flag.endStream : 0, this.id);
      output.bytes.set(bytes.subarray(this.#unsentAt, this.#unsentAt + part), start);
      output.at = start + part;
      this.sendWindow -= part;
      carrier.sendWindow -= part;
      progress = true;
      if (!isWhole) {
        this.#unsentAt += part;
        continue;
      }
      this.#unsentAt = 0;
      this.#unsent.shift();
      carrier.owe(this, -bytes.length);
      sent?.();
    }
    if (progress) carrier.touch();
    this.#finish();
    return progress;
  }

  /** Sends what was to follow after the last byte. */
  #finish(): void {
    const trailers = this.#trailers;
    if (trailers === undefined || this.isBlocked || this.over || this.localEnded) return;
    if (trailers !== noTrailers) this.#carrier.writeHeaders(this.id, trailers, true);
    this.#endLocal();
  }

  /** Ends the stream for both sides. */
  reset(code: ErrorCode): void {
    if (this.over) return;
    this.#carrier.writeReset(this.id, code);
    this.close();
  }

  /** The client is done. */
  endRemote(): void {
    this.remoteEnded = true;
    if (this.localEnded) this.close();
  }

  /** Bytes of the body that were taken: a WINDOW_UPDATE for them follows soon. */
  take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken < receiveWindow / 2 || this.remoteEnded || this.over) return;
    this.#carrier.writeWindowUpdate(this.id, this.#taken);
    this.receiveLeft += this.#taken;
    this.#taken = 0;
  }

  /** Forgets everything, and notifies the receiver. */
  close(): void {
    if (this.over) return;
    this.over = true;
    let owed = 0;
    for (const { bytes } of this.#unsent) owed += bytes.length;
    this.#unsent.length = 0;
    this.#trailers = undefined;
    if (owed > 0) this.#carrier.owe(this, -owed);
    this.#carrier.remove(this);
    this.receiver?.closed();
  }

  #endLocal(): void {
    this.localEnded = true;
    if (this.remoteEnded) this.close();
    else this.#carrier.answeredEarly(this);
  }
}

const noTrailers = new Uint8Array();

/** Most bytes of a message that is written in place. Longer ones are rare, and encoded first. */
const maxWritten = 1024;
const inPlace = new InPlaceWriter();
