import { parseDuration, parseMoment, renderDuration } from "sluice/internal";
import { CommandError } from "../terminal/terminal.ts";

export interface DurationBounds {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** `90s`, `2h`, `7d` in milliseconds. */
export function parseDurationFlag(flag: string, text: string, bounds?: DurationBounds): number {
  const ms = tryPositiveDuration(text);
  if (ms === undefined)
    throw new CommandError(`${flag} is ${JSON.stringify(text)}; it should be a duration such as 90s, 2h or 7d`);
  if (bounds !== undefined && (ms < bounds.leastMs || ms > bounds.mostMs))
    throw new CommandError(
      `${flag} is ${JSON.stringify(text)}; it should be from ${renderDuration(bounds.leastMs)} to ${renderDuration(bounds.mostMs)}`,
    );
  return ms;
}

/** The same, or undefined for what is not a duration. */
export function tryPositiveDuration(text: string): number | undefined {
  // A unit alone is one of it in a policy file; on a command line it is a slip.
  const ms = /^\d/.test(text) ? tryDuration(text) : undefined;
  return ms === undefined || ms <= 0 ? undefined : ms;
}

/** A date, a moment, or how long from now on. */
export function parseUntil(flag: string, text: string, nowMs: number): number {
  const atMs = parseMoment(text) ?? (/^\d/.test(text) ? withNow(tryDuration(text), nowMs) : undefined);
  if (atMs === undefined || atMs <= nowMs)
    throw new CommandError(
      `${flag} is ${JSON.stringify(text)}; it should be a duration such as 90d, or a date to come such as 2030-01-31 or 2030-01-31T12:00:00Z`,
    );
  return atMs;
}

/** A date, a moment, or how long ago. */
export function parseSince(flag: string, text: string, nowMs: number): number {
  const agoMs = /^\d/.test(text) ? tryDuration(text) : undefined;
  const atMs = parseMoment(text) ?? (agoMs === undefined ? undefined : nowMs - agoMs);
  if (atMs === undefined)
    throw new CommandError(
      `${flag} is ${JSON.stringify(text)}; it should be how long ago, such as 2h, or a date such as 2026-01-31`,
    );
  return atMs;
}

function withNow(ms: number | undefined, nowMs: number): number | undefined {
  return ms === undefined ? undefined : nowMs + ms;
}

function tryDuration(text: string): number | undefined {
  try {
    return parseDuration(text);
  } catch {
    return undefined;
  }
}
