/** As much of a protobuf writer as decisions need. `BinaryWriter` is one as well. */
export interface PlainWriter {
  uint32(value: number): this;
  int32(value: number): this;
  int64(value: number): this;
  bool(value: boolean): this;
  double(value: number): this;
  raw(bytes: Uint8Array): this;
}

/**
 * Writes a message where it is sent from, without a buffer in between. It throws a `RangeError` for what does not fit, and for numbers
 * below 0: the caller then encodes the message in the usual way.
 */
export class InPlaceWriter implements PlainWriter {
  #bytes: Buffer = Buffer.alloc(0);
  #end = 0;
  /** Where the next byte goes. */
  at = 0;

  /** Begins a message in `bytes`, from `start` and before `end`. */
  begin(bytes: Buffer, start: number, end: number): void {
    this.#bytes = bytes;
    this.at = start;
    this.#end = end;
  }

  uint32(value: number): this {
    return this.int64(value);
  }

  int32(value: number): this {
    return this.int64(value);
  }

  int64(value: number): this {
    if (this.at + 10 > this.#end || value < 0) throw new RangeError("the message is written in the usual way");
    let left = value;
    while (left >= 128) {
      this.#bytes[this.at++] = (left % 128) | 0x80;
      left = Math.floor(left / 128);
    }
    this.#bytes[this.at++] = left;
    return this;
  }

  bool(value: boolean): this {
    return this.int64(value ? 1 : 0);
  }

  double(value: number): this {
    if (this.at + 8 > this.#end) throw new RangeError("the message is written in the usual way");
    this.at = this.#bytes.writeDoubleLE(value, this.at);
    return this;
  }

  raw(bytes: Uint8Array): this {
    if (this.at + bytes.length > this.#end) throw new RangeError("the message is written in the usual way");
    this.#bytes.set(bytes, this.at);
    this.at += bytes.length;
    return this;
  }
}
