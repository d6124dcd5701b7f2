import type { CheckBatchRequest, CheckRequest } from "@sluice/protocol";
import { maxChecks } from "./check-results.ts";

/**
 * Reads a `sluice.v1.CheckBatchRequest` as the generated codec does, in about half the time: it knows what is usual, short
 * texts and names of dimensions that come again and again. Throws where the bytes are no message, and for groups, which
 * messages of today do not have. A dimension `__proto__` is kept here, so that it spoils its check alone.
 */
export function readBatch(bytes: Uint8Array): CheckBatchRequest {
  const reader = new Reader(bytes);
  const end = bytes.length;
  const batch: CheckBatchRequest = { sequence: 0, checks: [], deadlineMs: 0 };
  while (reader.at < end) {
    const tag = reader.varint();
    if (tag === 0x08) batch.sequence = reader.varint();
    else if (tag === 0x12) batch.checks.push(readCheckOf(batch, reader, reader.end(end)));
    else if (tag === 0x18) batch.deadlineMs = reader.varint();
    else reader.skip(tag, end);
  }
  return batch;
}

/** Reads a `sluice.v1.CheckRequest` by itself, in the same way. */
export function readSingleCheck(bytes: Uint8Array): CheckRequest {
  return readCheck(new Reader(bytes), bytes.length);
}

/** Of a batch that is too large anyway, checks are counted and not read. */
function readCheckOf({ checks }: CheckBatchRequest, reader: Reader, end: number): CheckRequest {
  if (checks.length <= maxChecks) return readCheck(reader, end);
  reader.at = end;
  return unread;
}

/** Most checks name no policies. */
const noPolicies: string[] = [];

function emptyCheck(): CheckRequest {
  return {
    domain: "",
    dimensions: {},
    cost: undefined,
    id: "",
    idTtlMs: 0,
    preview: false,
    policies: noPolicies,
    details: false,
    receipt: false,
  };
}

const unread = emptyCheck();

function readCheck(reader: Reader, end: number): CheckRequest {
  const check = emptyCheck();
  while (reader.at < end) {
    const tag = reader.varint();
    switch (tag) {
      case 0x0a:
        check.domain = reader.text(end);
        break;
      case 0x12:
        readDimension(reader, reader.end(end), check.dimensions);
        break;
      case 0x18:
        check.cost = reader.varint() | 0;
        break;
      case 0x22:
        check.id = reader.text(end);
        break;
      case 0x28:
        check.idTtlMs = reader.varint();
        break;
      case 0x30:
        check.preview = reader.flag();
        break;
      case 0x3a:
        if (check.policies === noPolicies) check.policies = [];
        check.policies.push(reader.text(end));
        break;
      case 0x40:
        check.details = reader.flag();
        break;
      case 0x48:
        check.receipt = reader.flag();
        break;
      default:
        reader.skip(tag, end);
    }
  }
  return check;
}

function readDimension(reader: Reader, end: number, dimensions: Record<string, string>): void {
  let name = "";
  let value = "";
  while (reader.at < end) {
    const tag = reader.varint();
    if (tag === 0x0a) name = reader.name(end);
    else if (tag === 0x12) value = reader.text(end);
    else reader.skip(tag, end);
  }
  if (name === "__proto__") keepProto(dimensions, value);
  else dimensions[name] = value;
}

/** Assigned it would be lost without a word; like this it is there to be refused. */
function keepProto(dimensions: Record<string, string>, value: string): void {
  Object.defineProperty(dimensions, "__proto__", { value, enumerable: true, configurable: true, writable: true });
}

/** Texts up to here are put together letter by letter, which is quicker than asking a decoder. */
const shortText = 24;

/** Names seen lately, each in the place that its length and letters give it. */
const names: ({ readonly text: string; readonly bytes: Uint8Array } | undefined)[] = new Array(256).fill(undefined);
const longestName = 64;

/** A read beyond the end stops at the latest where the next message inside of this one ends. */
class Reader {
  readonly #bytes: Buffer;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The lower 32 bits of a number, without a sign. */
  varint(): number {
    const bytes = this.#bytes;
    let byte = this.#next(bytes);
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let shift = 7; shift < 70; shift += 7) {
      byte = this.#next(bytes);
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new RangeError("a number has no end");
  }

  #next(bytes: Buffer): number {
    const byte = bytes[this.at];
    if (byte === undefined) throw new RangeError("the message ends too soon");
    this.at += 1;
    return byte;
  }

  flag(): boolean {
    const bytes = this.#bytes;
    const first = this.at;
    this.varint();
    // Any bit will do, of the upper 32 as well.
    for (let at = first; at < this.at; at += 1) if ((bytes[at]! & 0x7f) !== 0) return true;
    return false;
  }

  /** Where the message that begins here ends, inside of the one around it. */
  end(outerEnd: number): number {
    const length = this.varint();
    const end = this.at + length;
    if (end > outerEnd) throw new RangeError("the message ends too soon");
    return end;
  }

  text(outerEnd: number): string {
    const end = this.end(outerEnd);
    const start = this.at;
    this.at = end;
    return this.#textOf(start, end);
  }

  #textOf(start: number, end: number): string {
    const bytes = this.#bytes;
    if (end - start > shortText) return bytes.toString("utf8", start, end);
    let text = "";
    for (let at = start; at < end; at += 1) {
      const byte = bytes[at]!;
      if (byte > 0x7f) return bytes.toString("utf8", start, end);
      text += String.fromCharCode(byte);
    }
    return text;
  }

  /** A text that is likely to come again. */
  name(outerEnd: number): string {
    const end = this.end(outerEnd);
    const start = this.at;
    this.at = end;
    const length = end - start;
    if (length === 0 || length > longestName) return this.#textOf(start, end);
    const bytes = this.#bytes;
    const place = (length * 31 + bytes[start]! * 7 + bytes[end - 1]!) & 0xff;
    const known = names[place];
    if (known !== undefined && isAt(known.bytes, bytes, start, length)) return known.text;
    const text = this.#textOf(start, end);
    names[place] = { text, bytes: Uint8Array.from(bytes.subarray(start, end)) };
    return text;
  }

  /** Steps over a field that is not known. */
  skip(tag: number, end: number): void {
    const wireType = tag & 7;
    if (tag >>> 3 === 0) throw new RangeError("a field has no number");
    if (wireType === 0) this.varint();
    else if (wireType === 1) this.at += 8;
    else if (wireType === 2) this.at = this.end(end);
    else if (wireType === 5) this.at += 4;
    else throw new RangeError(`a field is of wire type ${wireType}, which is none`);
    if (this.at > end) throw new RangeError("the message ends too soon");
  }
}

function isAt(known: Uint8Array, bytes: Uint8Array, start: number, length: number): boolean {
  if (known.length !== length) return false;
  for (let i = 0; i < length; i += 1) if (known[i] !== bytes[start + i]) return false;
  return true;
}
