import { isUtf8 } from "node:buffer";

/**
 * Stands before bytes that are no text. No text has it: Unicode promises never to make a character of it, and where it is
 * sent all the same, that is taken for bytes as well.
 */
const bytesMark = "\u{10FFFF}";

/**
 * The text that bytes are in UTF-8, as over every other protocol. Bytes that are not UTF-8 become a mark and one character for
 * each: so different bytes are different subjects, whatever they are, and every subject can be written as UTF-8 again.
 */
export function decodeText(bytes: Buffer, start: number, end: number): string {
  for (let i = start; i < end; i++) if (bytes[i]! > 0x7f) return decodeWide(bytes.subarray(start, end));
  return bytes.toString("latin1", start, end);
}

function decodeWide(bytes: Buffer): string {
  const text = isUtf8(bytes) ? bytes.toString("utf8") : undefined;
  return text === undefined || text.startsWith(bytesMark) ? bytesMark + bytes.toString("latin1") : text;
}
