/** Texts up to here are put together letter by letter, which is quicker than asking a decoder. */
const shortText = 24;

/** Names seen lately, each in the place that its length and letters give it. */
const names: ({ readonly text: string; readonly bytes: Uint8Array } | undefined)[] = new Array(256).fill(undefined);
const longestName = 64;

/**
 * Reads the fields of a protobuf message one by one. A read beyond the end stops at the latest where the next message inside of
 * this one ends.
 */
export class FieldReader {
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
    return this.#decodeText(start, end);
  }

  #decodeText(start: number, end: number): string {
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
    if (length === 0 || length > longestName) return this.#decodeText(start, end);
    const bytes = this.#bytes;
    const place = (length * 31 + bytes[start]! * 7 + bytes[end - 1]!) & 0xff;
    const known = names[place];
    if (known !== undefined && isAt(known.bytes, bytes, start, length)) return known.text;
    const text = this.#decodeText(start, end);
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
