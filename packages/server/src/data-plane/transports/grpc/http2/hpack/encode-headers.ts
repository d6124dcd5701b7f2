import { encodeHuffman } from "./huffman.ts";
import { staticTable } from "./static-table.ts";

/**
 * A header block that says the same at any time on any connection: it neither reads nor changes the dynamic table. So blocks
 * that do not vary are encoded once and sent as they are. Values have one character per byte.
 */
export function encodeHeaders(fields: Iterable<readonly [name: string, value: string]>): Buffer {
  const parts: Buffer[] = [];
  for (const [name, value] of fields) {
    const index = staticTable.findIndex((one) => one[0] === name && one[1] === value);
    if (index > 0 && value !== "") {
      parts.push(encodeInteger(0x80, 7, index));
      continue;
    }
    const nameIndex = staticTable.findIndex((one) => one[0] === name);
    parts.push(encodeInteger(0, 4, Math.max(nameIndex, 0)));
    if (nameIndex < 0) parts.push(encodeText(name));
    parts.push(encodeText(value));
  }
  return Buffer.concat(parts);
}

function encodeInteger(first: number, prefix: number, value: number): Buffer {
  const most = 2 ** prefix - 1;
  if (value < most) return Buffer.from([first | value]);
  const bytes = [first | most];
  let left = value - most;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 0x80);
  return Buffer.from([...bytes, left]);
}

function encodeText(text: string): Buffer {
  const plain = Buffer.from(text, "latin1");
  // Long texts are rare, and not worth the work.
  const huffman = plain.length > 256 ? plain : encodeHuffman(text);
  if (huffman.length < plain.length) return Buffer.concat([encodeInteger(0x80, 7, huffman.length), huffman]);
  return Buffer.concat([encodeInteger(0, 7, plain.length), plain]);
}
