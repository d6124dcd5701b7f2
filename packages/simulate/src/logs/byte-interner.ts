const slots = 1 << 16;
/** Longer texts are seldom repeated. */
const maxLength = 128;

/**
 * Texts from bytes, the same object for the same bytes as long as it is remembered. Building a text costs more than
 * finding it here, and a text that is used again knows its hash. It remembers one text per slot, 65 536 at most.
 */
export class ByteInterner {
  readonly #texts: (string | undefined)[] = new Array(slots).fill(undefined);
  readonly #hashes: Int32Array = new Int32Array(slots);

  /** The text in `bytes` from `start` up to `end`, in UTF-8. */
  read(bytes: Buffer, start: number, end: number): string {
    const length = end - start;
    if (length > maxLength) return bytes.toString("utf8", start, end);
    // FNV-1a: the texts are compared too, so a collision costs time only.
    let hash = 0x811c9dc5;
    let all = 0;
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!;
      all |= byte;
      hash = Math.imul(hash ^ byte, 0x01000193);
    }
    if (all > 0x7f) return bytes.toString("utf8", start, end);
    const slot = (hash ^ (hash >>> 16)) & (slots - 1);
    const known = this.#texts[slot];
    if (known !== undefined && this.#hashes[slot] === hash && isSame(known, bytes, start, length)) return known;
    const text = bytes.toString("latin1", start, end);
    this.#texts[slot] = text;
    this.#hashes[slot] = hash;
    return text;
  }
}

function isSame(text: string, bytes: Buffer, start: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let i = 0; i < length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}
