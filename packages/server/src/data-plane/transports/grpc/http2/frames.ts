/** Frames of HTTP/2 (RFC 9113 §4 and §6): their numbers, and how they are written in place. */

export const frameHeadLength = 9;

/** The largest payload that either end sends, which is what HTTP/2 starts with. */
export const maxPayload = 16_384;

export const FrameType = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const Flag = { endStream: 0x1, acknowledge: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

export const ErrorCode = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  connectError: 10,
  enhanceYourCalm: 11,
  inadequateSecurity: 12,
  http11Required: 13,
} as const;
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

export const SettingId = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const maxWindow: number = 2 ** 31 - 1;
export const defaultWindow = 65_535;

/** What a client sends first. */
export const preface: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** An error that ends the connection, with what to say in GOAWAY. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Writes the nine bytes in front of a payload; returns where the payload begins. */
export function writeFrameHead(
  bytes: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): number {
  bytes[at] = length >>> 16;
  bytes[at + 1] = length >>> 8;
  bytes[at + 2] = length;
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  return writeUint32(bytes, at + 5, streamId);
}

/** Returns where the next byte goes. */
export function writeUint32(bytes: Uint8Array, at: number, value: number): number {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
  return at + 4;
}

export function readUint32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

/** A number of 31 bits, whose first bit means nothing. */
export function readUint31(bytes: Uint8Array, at: number): number {
  return readUint32(bytes, at) & 0x7fff_ffff;
}
