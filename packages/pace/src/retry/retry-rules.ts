import { checkOptions } from "../check-options.ts";
import { optionNumber } from "../option-number.ts";
import type { RateLimitReading } from "../reading/read-rate-limit.ts";

/** Doing these twice is the same as doing them once (RFC 9110, 9.2.2). */
const idempotentMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

export interface RepeatQuestion {
  readonly method: string;
  /** Whether it has an `Idempotency-Key`, by which the server knows it again. */
  readonly idempotencyKey: boolean;
  /** What the caller says of it; that counts before all else. */
  readonly repeatable?: boolean | undefined;
}

/** Whether a request may be sent twice without being carried out twice. Its body must also be there to be sent again. */
export function isRepeatable({ method, idempotencyKey, repeatable }: RepeatQuestion): boolean {
  return repeatable ?? (idempotencyKey || idempotentMethods.has(method.toUpperCase()));
}

/** Whether a body can be sent again: text and bytes can, a stream is gone once it was read. */
export function isReplayableBody(body: unknown): boolean {
  if (body === null || body === undefined || typeof body === "string") return true;
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return true;
  if (body instanceof URLSearchParams) return true;
  // Files and forms are read afresh each time. They are known by their tag, because there are several implementations.
  const tag = Object.prototype.toString.call(body);
  return tag === "[object Blob]" || tag === "[object File]" || tag === "[object FormData]";
}

/** How long an answer asks to wait: by its `Retry-After`, else by the reset of a limit of which nothing is left. */
export function findToldWaitMs({ retryAfterMs, limits }: RateLimitReading): number | undefined {
  if (retryAfterMs !== undefined) return retryAfterMs;
  const resets = limits.filter(({ remaining }) => remaining === 0).map(({ resetAfterMs }) => resetAfterMs);
  const known = resets.filter((resetAfterMs) => resetAfterMs !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/**
 * Whether an answer says "not now, but later". 429 does. 503 does with a `Retry-After`, and without it is any failure.
 * Other statuses that the caller names do where they tell how long.
 */
export function isRefusal(status: number, reading: RateLimitReading, statuses: readonly number[]): boolean {
  if (!statuses.includes(status)) return false;
  if (status === 429) return true;
  return (status === 503 ? reading.retryAfterMs : findToldWaitMs(reading)) !== undefined;
}

export interface RetryOptions {
  /** How often a request is sent in all. Absent: 3. */
  readonly maxAttempts?: number | undefined;
  /** A longer wait is not slept. Absent: 60 000. */
  readonly maxWaitMs?: number | undefined;
  /** Source of the jitter, 0 … 1. Absent: `Math.random`. */
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
    // What is not from 0 to 1 would make waits shorter than told, or no numbers at all.
    random: () => Math.min(1, Math.max(0, random())) || 0,
  };
}

const firstBackoffMs = 500;
const maxBackoffMs = 10_000;

/**
 * How long to wait before the next attempt, after the given one failed; undefined where there is to be none, because
 * there were enough or the wait is too long.
 *
 *     wait = told + uniform(0, min(10 s, 0.5 s × 2^(attempt − 1)))
 *
 * Never earlier than told, and who was refused together does not come back together.
 */
export function decideWaitMs(attempt: number, toldMs: number | undefined, rules: RetryRules): number | undefined {
  if (attempt >= rules.maxAttempts) return undefined;
  const leastMs = toldMs ?? 0;
  if (!(leastMs <= rules.maxWaitMs)) return undefined;
  const backoffMs = Math.min(maxBackoffMs, firstBackoffMs * 2 ** (attempt - 1));
  const jitter = Math.min(1, Math.max(0, rules.random())) || 0;
  return Math.min(rules.maxWaitMs, leastMs + Math.ceil(jitter * backoffMs));
}
