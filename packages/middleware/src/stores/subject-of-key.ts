import { createHash } from "node:crypto";
import { maxDimensionLength } from "sluice";

const hashed = "sha256:";

/**
 * A key of any length as a dimension that can be counted by: as it is, or its SHA-256 where it is too long. Keys that look
 * like a hash are hashed as well, so that nobody can write another's.
 */
export function subjectOfKey(key: string): string {
  if (key.length <= maxDimensionLength && !key.startsWith(hashed)) return key;
  // UTF-16 keeps apart what UTF-8 replaces by one and the same sign.
  return hashed + createHash("sha256").update(key, "utf16le").digest("hex");
}
