import { checkOptions } from "../check-options.ts";
import { optionNumber } from "../option-number.ts";
import type { RateLimitReading } from "../reading/read-rate-limit.ts";

/** Doing these twice is the same as doing them once (RFC 9110, 9.2.2). */
const idempotentMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

export interface RepeatQuestion {
  readonly method: string;
  /** Whether it has an `Idempotency-Key`, by which the server recognizes a repetition. */
  readonly idempotencyKey: boolean;
  /** The caller's own decision; it overrides everything else. */
  readonly repeatable?: boolean | undefined;
}

/** Whether a request may be sent twice without taking effect twice. Its body must also be replayable. */
export function isRepeatable({ method, idempotencyKey, repeatable }: RepeatQuestion): boolean {
  return repeatable ?? (idempotencyKey || idempotentMethods.has(method.toUpperCase()));
}

/** Whether a body can be sent again: text and bytes can, a stream is gone once it was read. */
export function isReplayableBody(body: unknown): boolean {
  if (body === null || body === undefined || typeof body === "string") return true;
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return true;
  if (body instanceof URLSearchParams) return true;
  // Files and forms can be read repeatedly. They are recognized by tag, because there are several implementations.
  const tag = Object.prototype.toString.call(body);
  return tag === "[object Blob]" || tag === "[object File]" || tag === "[object FormData]";
}

/** How long an answer asks to wait: by its `Retry-After`, else by the reset of an exhausted limit. */
export function findRequestedWaitMs({ retryAfterMs, limits }: RateLimitReading): number | undefined {
  if (retryAfterMs !== undefined) return retryAfterMs;
  const resets = limits.filter(({ remaining }) => remaining === 0).map(({ resetAfterMs }) => resetAfterMs);
  const known = resets.filter((resetAfterMs) => resetAfterMs !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/**
 * Whether an answer says "not now, but later". 429 does. 503 does with a `Retry-After`; without one it is an ordinary
 * failure. Other statuses that the caller names do if they say how long.
 */
export function isRefusal(status: number, reading: RateLimitReading, statuses: readonly number[]): boolean {
  if (!statuses.includes(status)) return false;
  if (status === 429) return true;
  return (status === 503 ? reading.retryAfterMs : findRequestedWaitMs(reading)) !== undefined;
}

export interface RetryOptions {
  /** How often a request is sent in total. Default: 3. */
  readonly maxAttempts?: number | undefined;
  /** A longer wait is not made; the answer is returned instead. Default: 60 000. */
  readonly maxWaitMs?: number | undefined;
  /** Source of the jitter, 0 … 1. Default: `Math.random`. */
  readonly random?: (() => number) | undefined;
}

export interface RetryRules {
  readonly maxAttempts: number;
  readonly maxWaitMs: number;
  readonly random: () => number;
}

export function parseRetryOptions(options: RetryOptions): RetryRules {
  checkOptions(options, { random: "function" });
  const { random = Math.random } = options;
  return {
    maxAttempts: optionNumber("maxAttempts", options.maxAttempts, 3, 1),
    maxWaitMs: optionNumber("maxWaitMs", options.maxWaitMs, 60_000, 0),
    // A value outside 0 to 1 would make waits shorter than requested, or NaN.
    random: () => Math.min(1, Math.max(0, random())) || 0,
  };
}

const firstBackoffMs = 500;
const maxBackoffMs = 10_000;

/**
 * How long to wait before the next attempt, after the given one failed; undefined for no further attempt, because there
 * were enough or the wait is too long.
 *
 *     wait = requested + uniform(0, min(10 s, 0.5 s × 2^(attempt − 1)))
 *
 * Never shorter than requested; and calls that were refused together do not come back together.
 */
export function decideWaitMs(attempt: number, requestedMs: number | undefined, rules: RetryRules): number | undefined {
  if (attempt >= rules.maxAttempts) return undefined;
  const leastMs = requestedMs ?? 0;
  if (!(leastMs <= rules.maxWaitMs)) return undefined;
  const backoffMs = Math.min(maxBackoffMs, firstBackoffMs * 2 ** (attempt - 1));
  const jitter = Math.min(1, Math.max(0, rules.random())) || 0;
  return Math.min(rules.maxWaitMs, leastMs + Math.ceil(jitter * backoffMs));
}
