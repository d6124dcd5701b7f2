import type { HeaderFields } from "./header-fields.ts";
import { parseHttpDate, parseIsoDate } from "./http-date.ts";

/** 2³¹ − 1 seconds, which stands for any longer time (RFC 9111, 1.2.2). */
export const maxWaitMs: number = 2_147_483_647_000;

/** Clocks this close count as equal: a `Date` has whole seconds, and answers take time to arrive. */
const clockSlackMs = 5000;

/** The comma after the name of a day belongs to a date. */
const betweenValues = /(?<!day|mon|tue|wed|thu|fri|sat|sun),/i;
const maxParts = 64;
const plainNumber = /^\d+(?:\.\d*)?$/;
const durationForm = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d))+$/;
const unitMs: ReadonlyMap<string, number> = new Map([
  ["ns", 1e-6],
  ["us", 1e-3],
  ["µs", 1e-3],
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/**
 * The server's current time: moments in its fields refer to its own clock. That is assumed equal to this machine's, unless
 * the answer's `Date` shows that the two differ.
 */
export function serverNowMs(fields: HeaderFields, nowMs: number): number {
  const date = parseHttpDate(fields.get("date")?.[0]?.trim() ?? "", nowMs);
  return date === undefined || Math.abs(date - nowMs) <= clockSlackMs ? nowMs : date;
}

/** How long `Retry-After` asks to wait. Undefined if absent or malformed. Of several, the longest counts. */
export function readRetryAfterMs(fields: HeaderFields, nowMs: number): number | undefined {
  const seconds = longest(fields.get("retry-after"), (text) => readRetryAfter(text, nowMs));
  if (seconds !== undefined) return seconds;
  for (const name of ["retry-after-ms", "x-ms-retry-after-ms"]) {
    const ms = longest(fields.get(name), (text) =>
      plainNumber.test(text) ? atMost(Math.ceil(Number(text))) : undefined,
    );
    if (ms !== undefined) return ms;
  }
  return undefined;
}

function readRetryAfter(text: string, nowMs: number): number | undefined {
  if (plainNumber.test(text)) return atMost(Math.ceil(Number(text) * 1000));
  const date = parseHttpDate(text, nowMs);
  if (date !== undefined) return atMost(Math.max(0, date - nowMs));
  // Two fields with the same name, which `Headers` joins.
  const parts = text.split(betweenValues);
  if (parts.length === 1 || parts.length > maxParts) return undefined;
  const waits = parts.map((part) => readRetryAfter(part.trim(), nowMs));
  return waits.every((wait) => wait !== undefined) ? Math.max(...waits) : undefined;
}

function longest(values: readonly string[] = [], read: (text: string) => number | undefined): number | undefined {
  const waits = values.map((text) => read(text.trim())).filter((wait) => wait !== undefined);
  return waits.length === 0 ? undefined : Math.max(...waits);
}

function atMost(ms: number): number {
  return Math.min(maxWaitMs, ms);
}

/**
 * How long until a reset, in any form that servers write: seconds from now, seconds or milliseconds since 1970, a date, or
 * a duration such as `6m0s`. The size of a number decides its unit: as seconds from now, half of today's epoch would be
 * decades. Undefined if it is none of these, or absurdly far in the future.
 */
export function readResetAfterMs(text: string, nowMs: number): number | undefined {
  const written = text.trim();
  const waitMs = readReset(written, nowMs);
  return waitMs === undefined || waitMs > maxWaitMs ? undefined : Math.max(0, Math.ceil(waitMs));
}

function readReset(text: string, nowMs: number): number | undefined {
  if (plainNumber.test(text)) {
    const value = Number(text);
    // A clock that was never set must not turn seconds into moments.
    const epochMs = Math.max(nowMs, 1e12);
    if (value > epochMs / 2) return value - nowMs;
    if (value > epochMs / 2000) return value * 1000 - nowMs;
    return value * 1000;
  }
  if (durationForm.test(text)) return durationMs(text);
  const date = parseHttpDate(text, nowMs) ?? parseIsoDate(text);
  return date === undefined ? undefined : date - nowMs;
}

function durationMs(text: string): number {
  let ms = 0;
  for (const [, amount, unit = ""] of text.matchAll(/(\d+(?:\.\d+)?)([a-zµ]+)/g))
    ms += Number(amount) * (unitMs.get(unit) ?? 0);
  return ms;
}
