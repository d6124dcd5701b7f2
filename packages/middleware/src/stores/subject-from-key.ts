import { createHash } from "node:crypto";
import { maxDimensionLength } from "sluice/internal";

const hashed = "sha256:";

/**
 * A key of any length as a dimension's value: unchanged, or its SHA-256 if it is too long. Keys that look like a hash are
 * hashed as well, so that no client can forge another key's hash.
 */
export function subjectFromKey(key: string): string {
  if (key.length <= maxDimensionLength && !key.startsWith(hashed)) return key;
  // UTF-16, because UTF-8 replaces all lone surrogates with the same character.
  return hashed + createHash("sha256").update(key, "utf16le").digest("hex");
}
