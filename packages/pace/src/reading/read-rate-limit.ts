import { readCountedFields } from "./counted-fields.ts";
import { collectFields, type HeaderSource } from "./header-fields.ts";
import { readIetfFields } from "./ietf-fields.ts";
import type { LimitReading } from "./limit-reading.ts";
import { readRetryAfterMs, serverNowMs } from "./read-wait.ts";

/** What an answer says of limits. */
export interface RateLimitReading {
  /** In the server's order; empty where it says nothing. */
  readonly limits: readonly LimitReading[];
  /** How long the server asks to wait. Absent where it does not ask. */
  readonly retryAfterMs?: number;
}

export interface ReadRateLimitOptions {
  /** The time, in epoch milliseconds. Absent: the machine's. */
  readonly nowMs?: number | undefined;
}

/**
 * Reads what header fields say of limits, in whichever of the forms that servers write. Never throws: what is malformed
 * is as good as absent, and the work is bounded however long the fields are. Of several forms in one answer the newest
 * counts, because they tell of the same limits.
 */
export function readRateLimit(headers: HeaderSource, options: ReadRateLimitOptions = {}): RateLimitReading {
  const fields = collectFields(headers);
  if (fields.size === 0) return nothing;
  const nowMs = serverNowMs(fields, options?.nowMs ?? Date.now());
  const retryAfterMs = readRetryAfterMs(fields, nowMs);
  const ietf = readIetfFields(fields);
  const standing = ietf.some(({ remaining }) => remaining !== undefined);
  const counted = standing ? [] : readCountedFields(fields, nowMs);
  const limits = counted.some(({ remaining }) => remaining !== undefined) || ietf.length === 0 ? counted : ietf;
  return { limits, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

const nothing: RateLimitReading = { limits: [] };
