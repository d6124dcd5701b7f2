import { createHash } from "node:crypto";

const maxKeyLength = 256;

/**
 * What a text of any length is found by in an index, whose entries are bounded (2 704 bytes in PostgreSQL): itself, or if it is
 * long its beginning and its digest. Two texts never have the same, and keys sort as their texts do, but for long texts with
 * the same beginning.
 */
export function textKey(text: string): string {
  if (text.length <= maxKeyLength) return text;
  const splitsPair = /[\ud800-\udbff]/.test(text[maxKeyLength - 1] ?? "");
  const digest = createHash("sha256").update(text).digest("hex");
  return `${text.slice(0, splitsPair ? maxKeyLength - 1 : maxKeyLength)}:${digest}`;
}
