import type { Turns } from "../../turns.ts";
import { Budget } from "./budget.ts";
import { budgets, type ConnectionLimits, noiseEarned } from "./connection-limits.ts";
import type { FrameSink } from "./frame-reader.ts";
import type { FrameWriter } from "./frame-writer.ts";
import {
  ConnectionError,
  ErrorCode,
  Flag,
  FrameType,
  maxPayload,
  maxWindow,
  readUint31,
  readUint32,
  SettingId,
} from "./frames.ts";
import { HeaderBlocks } from "./header-blocks.ts";
import type { OpenStreams } from "./open-streams.ts";
import type { RequestHead } from "./request-head.ts";
import type { Stream } from "./stream.ts";

/** Bytes of bodies that a client may send on all streams together before it gets a WINDOW_UPDATE. */
export const connectionWindow: number = 4 * 1024 * 1024;

/** After this many header blocks, cancelled calls, messages, and KiB of them, other connections may have their turn. */
const workPerStep = 32;

export interface FrameHandlerOptions {
  readonly streams: OpenStreams;
  readonly writer: FrameWriter;
  readonly limits: ConnectionLimits;
  readonly turns: Turns;
  /** A request has begun. It is given a receiver, or answered, or reset. */
  readonly onRequest: (stream: Stream, head: RequestHead) => void;
  /** The client has answered our PING. */
  readonly onPong: (payload: Buffer) => void;
}

/**
 * What a server does with each frame of a client (RFC 9113 §6). A rule that is broken on one stream ends that stream; what makes
 * the rest of the connection unreadable, or is no honest mistake, is thrown as a `ConnectionError`. Everything that is not a call
 * is paid for from budgets.
 */
export class FrameHandler implements FrameSink {
  /** The highest stream that the client has opened. */
  lastStreamId = 0;
  /** Whether further streams are ignored, because the client got the last GOAWAY. */
  refusing = false;
  /** Whether the connection is closed, and nothing more is read. */
  stopped = false;
  /** Whether the client has sent its settings, and has heard of ours. */
  settingsSeen = false;
  settingsAcknowledged = false;
  readonly #options: FrameHandlerOptions;
  readonly #streams: OpenStreams;
  readonly #writer: FrameWriter;
  readonly #blocks = new HeaderBlocks();
  readonly #noise: Budget;
  readonly #resets: Budget;
  readonly #mistakes: Budget;
  #receiveLeft = connectionWindow;
  #taken = 0;
  /** The request whose header block goes on in the next frame. */
  #continuing: { readonly streamId: number; readonly endStream: boolean } | undefined;
  #work = 0;

  constructor(options: FrameHandlerOptions) {
    const nowMs = performance.now();
    this.#options = options;
    this.#streams = options.streams;
    this.#writer = options.writer;
    this.#noise = new Budget(budgets.noise.burst, budgets.noise.perSecond, nowMs);
    this.#resets = new Budget(budgets.resets.burst, budgets.resets.perSecond, nowMs);
    this.#mistakes = new Budget(budgets.mistakes.burst, budgets.mistakes.perSecond, nowMs);
  }

  /** Bytes that are kept in order to read header blocks. */
  get heldBytes(): number {
    return this.#blocks.heldBytes;
  }

  /** An answer was sent, which clients acknowledge. */
  answered(): void {
    this.#noise.earn(noiseEarned);
    this.#resets.earn(1);
  }

  /** See `FrameSink`. */
  frame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (this.stopped) return false;
    if (this.#continuing !== undefined && type !== FrameType.continuation)
      throw new ConnectionError(ErrorCode.protocolError, "a header block is interrupted");
    if (!this.settingsSeen && type !== FrameType.settings)
      throw new ConnectionError(ErrorCode.protocolError, "the first frame is not SETTINGS");
    switch (type) {
      case FrameType.data:
        this.#data(flags, streamId, bytes, start, end);
        break;
      case FrameType.headers:
        this.#headers(flags, streamId, bytes, start, end);
        break;
      case FrameType.priority:
        this.#priority(streamId, bytes, start, end);
        break;
      case FrameType.resetStream:
        this.#resetStream(streamId, end - start);
        break;
      case FrameType.settings:
        this.#settings(flags, streamId, bytes, start, end);
        break;
      case FrameType.pushPromise:
        throw new ConnectionError(ErrorCode.protocolError, "a client cannot promise anything");
      case FrameType.ping:
        this.#ping(flags, streamId, bytes, start, end);
        break;
      case FrameType.goAway:
        if (streamId !== 0) throw new ConnectionError(ErrorCode.protocolError, "GOAWAY is on a stream");
        if (end - start < 8) throw new ConnectionError(ErrorCode.frameSizeError, "GOAWAY is too short");
        this.#spendNoise(1);
        break;
      case FrameType.windowUpdate:
        this.#windowUpdate(streamId, bytes, start, end);
        break;
      case FrameType.continuation:
        this.#continuation(flags, streamId, bytes, start, end);
        break;
      default:
        // Frames of extensions are ignored.
        this.#spendNoise(1);
    }
    if (this.#work < workPerStep) return !this.stopped;
    this.#work = 0;
    return !this.#writer.output.isFull && this.#options.turns.mayGoOn();
  }

  #headers(flags: number, streamId: number, bytes: Buffer, payloadStart: number, payloadEnd: number): void {
    if (streamId % 2 === 0)
      throw new ConnectionError(ErrorCode.protocolError, "HEADERS are on no stream of a client's");
    let start = payloadStart;
    let end = payloadEnd;
    if ((flags & Flag.padded) !== 0) {
      if (start === end) throw new ConnectionError(ErrorCode.frameSizeError, "HEADERS are too short for their padding");
      end -= bytes[start]!;
      start += 1;
    }
    let dependsOn = 0;
    if ((flags & Flag.priority) !== 0) {
      if (payloadEnd - start < 5) throw new ConnectionError(ErrorCode.frameSizeError, "HEADERS are too short");
      dependsOn = readUint31(bytes, start);
      start += 5;
    }
    if (start > end) throw new ConnectionError(ErrorCode.protocolError, "HEADERS have more padding than bytes");
    const endStream = (flags & Flag.endStream) !== 0;
    if (dependsOn === streamId) throw new ConnectionError(ErrorCode.protocolError, "a stream depends on itself");
    this.#work += (end - start) >> 9;
    if ((flags & Flag.endHeaders) !== 0) this.#block(streamId, endStream, bytes, start, end);
    else {
      this.#blocks.addPart(bytes, start, end);
      this.#continuing = { streamId, endStream };
    }
  }

  #continuation(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    const continuing = this.#continuing;
    if (continuing?.streamId !== streamId)
      throw new ConnectionError(ErrorCode.protocolError, "CONTINUATION continues nothing");
    this.#work += (end - start) >> 9;
    if ((flags & Flag.endHeaders) === 0) {
      this.#blocks.addPart(bytes, start, end);
      return;
    }
    this.#continuing = undefined;
    this.#block(streamId, continuing.endStream, bytes, start, end);
  }

  /** A header block is complete. Whatever becomes of its stream, it is decoded: the blocks after it depend on that. */
  #block(streamId: number, endStream: boolean, bytes: Buffer, start: number, end: number): void {
    this.#work += 1;
    if (streamId > this.lastStreamId) {
      const head = this.#blocks.readHead(bytes, start, end);
      if (this.refusing) {
        this.#spendNoise(1);
        return;
      }
      this.lastStreamId = streamId;
      this.#open(streamId, head, endStream);
      return;
    }
    const good = this.#blocks.readTrailers(bytes, start, end);
    const stream = this.#streams.find(streamId);
    if (stream === undefined) {
      this.#afterReset(streamId, endStream, "HEADERS");
      if (!endStream) this.#spendNoise(1);
      return;
    }
    if (stream.remoteEnded) this.#mistake(stream, ErrorCode.streamClosed);
    else if (!endStream || !good || (stream.contentLeft ?? 0) !== 0) this.#mistake(stream, ErrorCode.protocolError);
    else {
      stream.remoteEnded = true;
      stream.receiver?.data(bytes, end, end, true);
      if (stream.localEnded) stream.close();
    }
  }

  #open(streamId: number, head: RequestHead, endStream: boolean): void {
    if (head.malformed || (endStream && (head.contentLength ?? 0) > 0)) {
      this.#spendMistake();
      this.#streams.writeReset(streamId, ErrorCode.protocolError);
      return;
    }
    if (this.#streams.size >= this.#options.limits.maxConcurrentStreams) {
      this.#spendNoise(1);
      this.#streams.writeReset(streamId, ErrorCode.refusedStream);
      return;
    }
    // A call without a body is work too.
    this.#work += 1;
    const stream = this.#streams.open(streamId);
    stream.contentLeft = head.contentLength;
    stream.remoteEnded = endStream;
    this.#options.onRequest(stream, head);
    if (endStream && !stream.over) stream.receiver?.data(noBytes, 0, 0, true);
    if (stream.localEnded && stream.remoteEnded) stream.close();
  }

  #data(flags: number, streamId: number, bytes: Buffer, payloadStart: number, payloadEnd: number): void {
    const length = payloadEnd - payloadStart;
    if (streamId === 0 || streamId > this.lastStreamId) {
      if (this.refusing && streamId % 2 === 1) {
        this.#spendNoise(1);
        this.#take(length);
        return;
      }
      throw new ConnectionError(ErrorCode.protocolError, "DATA is on no stream");
    }
    let start = payloadStart;
    let end = payloadEnd;
    if ((flags & Flag.padded) !== 0) {
      if (length === 0) throw new ConnectionError(ErrorCode.frameSizeError, "DATA is too short for its padding");
      end -= bytes[start]!;
      start += 1;
      if (start > end) throw new ConnectionError(ErrorCode.protocolError, "DATA has more padding than bytes");
    }
    this.#take(length);
    const stream = this.#streams.find(streamId);
    const isLast = (flags & Flag.endStream) !== 0;
    if (stream === undefined) {
      this.#afterReset(streamId, isLast, "DATA");
      if (start === end && !isLast) this.#spendNoise(1);
      return;
    }
    if (stream.remoteEnded) {
      this.#mistake(stream, ErrorCode.streamClosed);
      return;
    }
    stream.receiveLeft -= length;
    if (stream.receiveLeft < 0) {
      this.#mistake(stream, ErrorCode.flowControlError);
      return;
    }
    const padding = length - (end - start);
    if (padding > 0) stream.take(padding);
    if (start === end && !isLast) this.#spendNoise(1);
    if (stream.contentLeft !== undefined) {
      stream.contentLeft -= end - start;
      if (stream.contentLeft < 0 || (isLast && stream.contentLeft > 0)) {
        this.#mistake(stream, ErrorCode.protocolError);
        return;
      }
    }
    this.#work += 1 + ((end - start) >> 10);
    stream.remoteEnded = isLast;
    if (stream.localEnded) stream.take(end - start);
    else stream.receiver?.data(bytes, start, end, isLast);
    if (isLast && stream.localEnded) stream.close();
  }

  /** A frame on a stream that is closed: it may have crossed our reset. Behind the client's own end nothing may follow. */
  #afterReset(streamId: number, isLast: boolean, what: string): void {
    if (!this.#streams.wasReset(streamId))
      throw new ConnectionError(ErrorCode.streamClosed, `${what} on a stream that is closed`);
    if (isLast) this.#streams.forgetReset(streamId);
    this.#work += 1;
  }

  /** Bytes of DATA are done with, as far as the connection goes. */
  #take(bytes: number): void {
    this.#receiveLeft -= bytes;
    if (this.#receiveLeft < 0)
      throw new ConnectionError(ErrorCode.flowControlError, "more was sent than the window of the connection allows");
    this.#taken += bytes;
    if (this.#taken < connectionWindow / 2) return;
    this.#streams.writeWindowUpdate(0, this.#taken);
    this.#receiveLeft += this.#taken;
    this.#taken = 0;
  }

  #priority(streamId: number, bytes: Buffer, start: number, end: number): void {
    if (streamId === 0) throw new ConnectionError(ErrorCode.protocolError, "PRIORITY is on no stream");
    this.#spendNoise(1);
    const isWrong = end - start !== 5;
    if (!isWrong && readUint31(bytes, start) !== streamId) return;
    const code = isWrong ? ErrorCode.frameSizeError : ErrorCode.protocolError;
    const stream = this.#streams.find(streamId);
    if (stream === undefined) throw new ConnectionError(code, "PRIORITY is malformed");
    this.#mistake(stream, code);
  }

  #resetStream(streamId: number, length: number): void {
    if (length !== 4) throw new ConnectionError(ErrorCode.frameSizeError, "RST_STREAM is malformed");
    if (streamId === 0 || (streamId > this.lastStreamId && !this.refusing))
      throw new ConnectionError(ErrorCode.protocolError, "RST_STREAM is on no stream");
    if (!this.#resets.take(1, readNow))
      throw new ConnectionError(ErrorCode.enhanceYourCalm, "too many calls are cancelled");
    this.#work += 1;
    const stream = this.#streams.find(streamId);
    if (stream === undefined) this.#spendNoise(1);
    else stream.close();
  }

  #settings(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    if (streamId !== 0) throw new ConnectionError(ErrorCode.protocolError, "SETTINGS are on a stream");
    if ((flags & Flag.acknowledge) !== 0) {
      if (start !== end)
        throw new ConnectionError(ErrorCode.frameSizeError, "an acknowledgement of SETTINGS has bytes");
      this.settingsAcknowledged = true;
      this.#spendNoise(1);
      return;
    }
    if ((end - start) % 6 !== 0) throw new ConnectionError(ErrorCode.frameSizeError, "SETTINGS are malformed");
    this.settingsSeen = true;
    this.#spendNoise(1);
    for (let at = start; at < end; at += 6)
      this.#setting((bytes[at]! << 8) | bytes[at + 1]!, readUint32(bytes, at + 2));
    this.#writer.settingsAcknowledged();
    this.#streams.touch();
    // Clients count a larger window from the acknowledgement on.
    this.#streams.pumpBlocked();
  }

  #setting(id: number, value: number): void {
    if (id === SettingId.initialWindowSize) {
      // It is carried to every stream, as often as one frame says it.
      const cost = this.#streams.size >> 5;
      this.#spendNoise(cost);
      this.#work += cost;
    }
    if (id === SettingId.headerTableSize && value < 4096) this.#writer.mustResizeTable = true;
    else if (id === SettingId.enablePush && value > 1)
      throw new ConnectionError(ErrorCode.protocolError, "ENABLE_PUSH is neither 0 nor 1");
    else if (id === SettingId.maxFrameSize && (value < maxPayload || value > 2 ** 24 - 1))
      throw new ConnectionError(ErrorCode.protocolError, "MAX_FRAME_SIZE is out of range");
    else if (id === SettingId.initialWindowSize && (value > maxWindow || !this.#streams.resizeWindows(value)))
      throw new ConnectionError(ErrorCode.flowControlError, "INITIAL_WINDOW_SIZE makes a window too large");
  }

  #ping(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    if (streamId !== 0) throw new ConnectionError(ErrorCode.protocolError, "PING is on a stream");
    if (end - start !== 8) throw new ConnectionError(ErrorCode.frameSizeError, "PING does not have eight bytes");
    this.#spendNoise(1);
    if ((flags & Flag.acknowledge) !== 0) {
      this.#options.onPong(bytes.subarray(start, end));
      return;
    }
    this.#writer.ping(bytes.subarray(start, end), Flag.acknowledge);
    this.#streams.touch();
  }

  #windowUpdate(streamId: number, bytes: Buffer, start: number, end: number): void {
    if (end - start !== 4) throw new ConnectionError(ErrorCode.frameSizeError, "WINDOW_UPDATE is malformed");
    this.#spendNoise(1);
    const increment = readUint31(bytes, start);
    if (streamId === 0) {
      if (increment === 0) throw new ConnectionError(ErrorCode.protocolError, "WINDOW_UPDATE adds nothing");
      if (!this.#streams.addWindow(increment))
        throw new ConnectionError(ErrorCode.flowControlError, "WINDOW_UPDATE makes the window too large");
      return;
    }
    const stream = this.#streams.find(streamId);
    if (stream === undefined) {
      if (streamId > this.lastStreamId && !this.refusing)
        throw new ConnectionError(ErrorCode.protocolError, "WINDOW_UPDATE is on no stream");
      return;
    }
    if (increment === 0) this.#mistake(stream, ErrorCode.protocolError);
    else if (stream.sendWindow + increment > maxWindow) this.#mistake(stream, ErrorCode.flowControlError);
    else {
      stream.sendWindow += increment;
      if (stream.isBlocked) this.#streams.pump(stream);
    }
  }

  #spendNoise(cost: number): void {
    if (!this.#noise.take(cost, readNow))
      throw new ConnectionError(ErrorCode.enhanceYourCalm, "too many frames that ask for nothing");
  }

  #spendMistake(): void {
    if (!this.#mistakes.take(1, readNow))
      throw new ConnectionError(ErrorCode.enhanceYourCalm, "too many streams that break a rule");
  }

  /** The client broke a rule on one stream. */
  #mistake(stream: Stream, code: ErrorCode): void {
    this.#spendMistake();
    stream.reset(code);
  }
}

const noBytes = Buffer.alloc(0);

function readNow(): number {
  return performance.now();
}
