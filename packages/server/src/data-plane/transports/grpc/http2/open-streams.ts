import type { FrameWriter } from "./frame-writer.ts";
import { defaultWindow, ErrorCode, maxWindow } from "./frames.ts";
import type { Output } from "./output.ts";
import { Stream, type StreamCarrier } from "./stream.ts";

/** What the streams of a connection ask of it. */
export interface OpenStreamsOptions {
  readonly writer: FrameWriter;
  /** Something was written: it leaves at the end of this turn. */
  readonly touch: () => void;
  /** Bytes of answers wait to be sent; below 0 once they are. */
  readonly owe: (stream: Stream, bytes: number) => void;
  /** The last stream is over. */
  readonly onIdle: () => void;
}

/**
 * Streams that we have reset, and on which the client may have sent something before it heard of it: twice as many as may be open,
 * because some clients send the headers of all their calls before the first message.
 */
const maxRecentResets = 10_000;
const recentResetBytes = 32;

/**
 * The open streams of a connection, and flow control of what is sent on them. A stream with bytes to send is either out of its
 * own window, and waits for that alone, or it is among `#blocked` and goes on when the connection has room; so an update of the
 * connection's window costs no more than what it lets through.
 */
export class OpenStreams implements StreamCarrier {
  sendWindow: number = defaultWindow;
  /** Bytes of answers that wait to be sent. */
  owedBytes = 0;
  readonly #options: OpenStreamsOptions;
  readonly #writer: FrameWriter;
  readonly #streams = new Map<number, Stream>();
  readonly #blocked = new Set<Stream>();
  readonly #recentResets = new Set<number>();
  #answeredEarly: Stream[] = [];
  #peerStreamWindow = defaultWindow;

  constructor(options: OpenStreamsOptions) {
    this.#options = options;
    this.#writer = options.writer;
  }

  get output(): Output {
    return this.#writer.output;
  }

  get size(): number {
    return this.#streams.size;
  }

  /** What remembering streams that are over takes. */
  get heldBytes(): number {
    return this.#recentResets.size * recentResetBytes;
  }

  open(id: number): Stream {
    const stream = new Stream(id, this, this.#peerStreamWindow);
    this.#streams.set(id, stream);
    return stream;
  }

  find(id: number): Stream | undefined {
    return this.#streams.get(id);
  }

  /** Whether we have reset it, so short a time ago that the client may not know. */
  wasReset(id: number): boolean {
    return this.#recentResets.has(id);
  }

  /** The client has ended it as well. */
  forgetReset(id: number): void {
    this.#recentResets.delete(id);
  }

  closeAll(): void {
    for (const stream of [...this.#streams.values()]) stream.close();
    this.#answeredEarly = [];
  }

  /** A new size of every stream's window, for the next `pumpBlocked`. Returns false if one of them becomes too large. */
  resizeWindows(window: number): boolean {
    const change = window - this.#peerStreamWindow;
    this.#peerStreamWindow = window;
    for (const stream of this.#streams.values()) {
      stream.sendWindow += change;
      if (stream.sendWindow > maxWindow) return false;
      if (change > 0 && stream.isBlocked) this.#blocked.add(stream);
    }
    return true;
  }

  /** More room in the window of the connection. Returns false if it becomes too large. */
  addWindow(bytes: number): boolean {
    this.sendWindow += bytes;
    if (this.sendWindow > maxWindow) return false;
    this.pumpBlocked();
    return true;
  }

  /** Sends what there is room for, stream by stream. Those that still have something go to the end of the line. */
  pumpBlocked(): void {
    // Without a copy: a client may open its window a byte at a time, with thousands of streams in line. A stream goes to the end
    // of the line only if the room is used up, so this ends.
    for (const stream of this.#blocked) {
      if (this.sendWindow <= 0 || this.output.isFull) return;
      this.pump(stream);
    }
  }

  pump(stream: Stream): void {
    this.#blocked.delete(stream);
    if (stream.pump()) stream.blockedSinceMs = performance.now();
    if (stream.isBlocked && stream.sendWindow > 0) this.#blocked.add(stream);
  }

  /** Ends streams whose client was answered and is still sending. Others have ended meanwhile. */
  resetAnsweredEarly(): void {
    if (this.#answeredEarly.length === 0) return;
    const streams = this.#answeredEarly;
    this.#answeredEarly = [];
    for (const stream of streams) stream.reset(ErrorCode.noError);
  }

  /** Ends streams of which the client has taken nothing for so long, although there is something. */
  tick(nowMs: number, unreadMs: number): void {
    for (const stream of [...this.#streams.values()]) {
      if (stream.isBlocked && nowMs - stream.blockedSinceMs > unreadMs) stream.reset(ErrorCode.cancel);
      else stream.receiver?.tick(nowMs);
    }
  }

  // What streams ask for.

  writeHeaders(streamId: number, block: Uint8Array, isLast: boolean): void {
    this.#writer.headers(streamId, block, isLast);
    this.#options.touch();
  }

  writeReset(streamId: number, code: ErrorCode): void {
    if (this.#recentResets.size >= maxRecentResets) {
      const [oldest] = this.#recentResets;
      this.#recentResets.delete(oldest!);
    }
    this.#recentResets.add(streamId);
    this.#writer.reset(streamId, code);
    this.#options.touch();
  }

  writeWindowUpdate(streamId: number, bytes: number): void {
    this.#writer.windowUpdate(streamId, bytes);
    this.#options.touch();
  }

  touch(): void {
    this.#options.touch();
  }

  block(stream: Stream): void {
    stream.blockedSinceMs = performance.now();
    if (stream.sendWindow > 0) this.#blocked.add(stream);
  }

  answeredEarly(stream: Stream): void {
    this.#answeredEarly.push(stream);
    this.#options.touch();
  }

  remove(stream: Stream): void {
    this.#streams.delete(stream.id);
    if (this.#blocked.size > 0) this.#blocked.delete(stream);
    if (this.#streams.size === 0) this.#options.onIdle();
  }

  owe(stream: Stream, bytes: number): void {
    this.owedBytes += bytes;
    this.#options.owe(stream, bytes);
  }
}
