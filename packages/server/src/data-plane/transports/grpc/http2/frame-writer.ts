import {
  defaultWindow,
  type ErrorCode,
  Flag,
  FrameType,
  frameHeadLength,
  maxWindow,
  SettingId,
  writeFrameHead,
  writeUint32,
} from "./frames.ts";
import type { Output } from "./output.ts";
import { maxHeaderListBytes } from "./request-head.ts";
import { receiveWindow } from "./stream.ts";

/** Announces that our table for headers is empty, and stays so. */
const emptyTable = 0x20;

/** Writes frames other than DATA into the output of a connection. */
export class FrameWriter {
  readonly output: Output;
  /** Whether the client has made its table for our headers smaller, and waits to hear that we know. */
  mustResizeTable = false;

  constructor(output: Output) {
    this.output = output;
  }

  /** What a server says first. Only WINDOW_UPDATE makes the window of a connection larger. */
  greeting(maxConcurrentStreams: number, connectionWindow: number): void {
    const settings: readonly (readonly [number, number])[] = [
      [SettingId.maxConcurrentStreams, maxConcurrentStreams],
      [SettingId.initialWindowSize, receiveWindow],
      [SettingId.maxHeaderListSize, maxHeaderListBytes],
    ];
    let at = this.#begin(settings.length * 6, FrameType.settings, 0, 0);
    for (const [id, value] of settings) {
      this.output.bytes[at] = id >>> 8;
      this.output.bytes[at + 1] = id;
      at = writeUint32(this.output.bytes, at + 2, value);
    }
    this.output.at = at;
    this.windowUpdate(0, connectionWindow - defaultWindow);
  }

  /** A header block, in one frame: ours are short. */
  headers(streamId: number, block: Uint8Array, isLast: boolean): void {
    const flags = isLast ? Flag.endHeaders | Flag.endStream : Flag.endHeaders;
    if (this.mustResizeTable) {
      this.mustResizeTable = false;
      const at = this.#begin(block.length + 1, FrameType.headers, flags, streamId);
      this.output.bytes[at] = emptyTable;
      this.output.bytes.set(block, at + 1);
      this.output.at = at + 1 + block.length;
      return;
    }
    const at = this.#begin(block.length, FrameType.headers, flags, streamId);
    this.output.bytes.set(block, at);
    this.output.at = at + block.length;
  }

  settingsAcknowledged(): void {
    this.output.at = this.#begin(0, FrameType.settings, Flag.acknowledge, 0);
  }

  ping(payload: Uint8Array, flags: number): void {
    const at = this.#begin(8, FrameType.ping, flags, 0);
    this.output.bytes.set(payload, at);
    this.output.at = at + 8;
  }

  reset(streamId: number, code: ErrorCode): void {
    const at = this.#begin(4, FrameType.resetStream, 0, streamId);
    this.output.at = writeUint32(this.output.bytes, at, code);
  }

  windowUpdate(streamId: number, bytes: number): void {
    const at = this.#begin(4, FrameType.windowUpdate, 0, streamId);
    this.output.at = writeUint32(this.output.bytes, at, bytes);
  }

  /** `lastStreamId` absent: no stream is refused yet. */
  goAway(code: ErrorCode, message: string, lastStreamId: number = maxWindow): void {
    const text = Buffer.from(message, "latin1");
    let at = this.#begin(8 + text.length, FrameType.goAway, 0, 0);
    at = writeUint32(this.output.bytes, at, lastStreamId);
    at = writeUint32(this.output.bytes, at, code);
    this.output.bytes.set(text, at);
    this.output.at = at + text.length;
  }

  /** Returns where the payload goes. */
  #begin(length: number, type: number, flags: number, streamId: number): number {
    const at = this.output.reserve(frameHeadLength + length);
    return writeFrameHead(this.output.bytes, at, length, type, flags, streamId);
  }
}
