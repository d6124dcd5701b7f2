import { readCountedFields } from "./counted-fields.ts";
import { collectFields, type HeaderSource } from "./header-fields.ts";
import { readIetfFields } from "./ietf-fields.ts";
import type { LimitReading } from "./limit-reading.ts";
import { readRetryAfterMs, serverNowMs } from "./read-wait.ts";

/** The limits that an answer reports. */
export interface RateLimitReading {
  /** In the server's order; empty if it reports none. */
  readonly limits: readonly LimitReading[];
  /** How long the server asks to wait. Absent if it does not. */
  readonly retryAfterMs?: number;
}

export interface ReadRateLimitOptions {
  /** The time, in epoch milliseconds. Default: the machine's. */
  readonly nowMs?: number | undefined;
}

/**
 * Reads limits from header fields, in any of the forms that servers write. Never throws: malformed fields count as absent,
 * and the work is bounded however long the fields are. If an answer has several forms, the newest counts, because they
 * describe the same limits.
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
