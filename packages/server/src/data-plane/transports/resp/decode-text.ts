import { isUtf8 } from "node:buffer";

/**
 * Marks bytes that are not text. No text contains it: Unicode promises never to assign it, and if a client sends it all
 * the same, that counts as bytes as well.
 */
const bytesMark = "\u{10FFFF}";

/**
 * Decodes UTF-8, as over every other protocol. Bytes that are not UTF-8 become a mark and one character each: so
 * different bytes are different subjects, whatever they are, and every subject can be written as UTF-8 again.
 */
export function decodeText(bytes: Buffer, start: number, end: number): string {
  for (let i = start; i < end; i++) if (bytes[i]! > 0x7f) return decodeWide(bytes.subarray(start, end));
  return bytes.toString("latin1", start, end);
}

function decodeWide(bytes: Buffer): string {
  const text = isUtf8(bytes) ? bytes.toString("utf8") : undefined;
  return text === undefined || text.startsWith(bytesMark) ? bytesMark + bytes.toString("latin1") : text;
}
