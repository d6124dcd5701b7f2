import { createHash } from "node:crypto";

const maxKeyLength = 256;

/**
 * The key under which an index holds a text of any length. Index entries are bounded (2 704 bytes in PostgreSQL), so a long text
 * is found by its beginning and its digest. No two texts share a key, and keys sort as their texts do, except for long texts with
 * the same beginning.
 */
export function textKey(text: string): string {
  if (text.length <= maxKeyLength) return text;
  const splitsPair = /[\ud800-\udbff]/.test(text[maxKeyLength - 1] ?? "");
  const digest = createHash("sha256").update(text).digest("hex");
  return `${text.slice(0, splitsPair ? maxKeyLength - 1 : maxKeyLength)}:${digest}`;
}
