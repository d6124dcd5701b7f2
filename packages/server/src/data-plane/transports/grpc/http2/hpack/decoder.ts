import { CompressionError } from "./compression-error.ts";
import { DynamicTable } from "./dynamic-table.ts";
import { decodeHuffman } from "./huffman.ts";
import { staticTable } from "./static-table.ts";

/** Hears the fields of a block, in order. Names and values have one character per byte. */
export interface FieldSink {
  field(name: string, value: string): void;
}

/** What clients may have remembered: what HTTP/2 starts with, so that there is nothing to agree on. */
const maxTableBytes = 4096;

/** Beyond this a number is no length or index that a block of ours can have. */
const maxInteger = 2 ** 28;

/**
 * Decodes header blocks (HPACK, RFC 7541) of one connection. Work and memory are in proportion to the bytes of a block: a field
 * that is named by its index is handed on as the text that is kept, however long that is.
 */
export class HpackDecoder {
  readonly table: DynamicTable = new DynamicTable(maxTableBytes);
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #end = 0;

  /** Decodes the block in `bytes` from `start` to `end`. Throws `CompressionError`; then the connection is of no use. */
  decode(bytes: Buffer, start: number, end: number, sink: FieldSink): void {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    let begun = false;
    while (this.#at < end) {
      const first = bytes[this.#at]!;
      if ((first & 0xe0) === 0x20) {
        if (begun) throw new CompressionError("the table is resized in the middle of a block");
        this.#resize();
        continue;
      }
      begun = true;
      if ((first & 0x80) !== 0) this.#indexed(sink);
      else if ((first & 0x40) !== 0) this.#literal(6, true, sink);
      // Without indexing, or never to be indexed: the same to a receiver that sends nothing on.
      else this.#literal(4, false, sink);
    }
  }

  #resize(): void {
    const bytes = this.#integer(5);
    if (bytes > maxTableBytes) throw new CompressionError("the table is resized beyond what was agreed on");
    this.table.resize(bytes);
  }

  #indexed(sink: FieldSink): void {
    const index = this.#integer(7);
    if (index === 0) throw new CompressionError("a field has the index 0");
    if (index < staticTable.length) {
      const [name, value] = staticTable[index]!;
      sink.field(name, value);
      return;
    }
    const age = this.#ageAt(index);
    sink.field(this.table.nameAt(age), this.table.valueAt(age));
  }

  #literal(prefix: number, kept: boolean, sink: FieldSink): void {
    const index = this.#integer(prefix);
    const name = index === 0 ? this.#text() : this.#nameAt(index);
    const value = this.#text();
    if (kept) this.table.add(name, value);
    sink.field(name, value);
  }

  #nameAt(index: number): string {
    return index < staticTable.length ? staticTable[index]![0] : this.table.nameAt(this.#ageAt(index));
  }

  #ageAt(index: number): number {
    const age = index - staticTable.length;
    if (age >= this.table.count) throw new CompressionError(`there is no field at the index ${index}`);
    return age;
  }

  /** A number whose first bits are the last `prefix` bits of the next byte (§5.1). */
  #integer(prefix: number): number {
    const most = 2 ** prefix - 1;
    let value = this.#next() & most;
    if (value < most) return value;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#next();
      value += (byte & 0x7f) * scale;
      if (value > maxInteger || scale > maxInteger) throw new CompressionError("a number is too large");
      if (byte < 0x80) return value;
    }
  }

  #text(): string {
    const isHuffman = this.#at < this.#end && (this.#bytes[this.#at]! & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#at;
    const end = start + length;
    if (end > this.#end) throw new CompressionError("a block ends in the middle of a text");
    this.#at = end;
    return isHuffman ? decodeHuffman(this.#bytes, start, end) : this.#bytes.toString("latin1", start, end);
  }

  #next(): number {
    if (this.#at >= this.#end) throw new CompressionError("a block ends in the middle of a number");
    return this.#bytes[this.#at++]!;
  }
}
