import { SluiceError } from "sluice";
import { maxDeadlineMs, parseDuration } from "sluice/internal";
import { invalidRequest } from "./invalid-request.ts";
import type { ConnectOptions } from "./remote-limiter.ts";

/** How long a check waits, by either of the two options. Undefined if neither is given. */
export function parseDeadlineMs({ deadline, deadlineMs }: ConnectOptions): number | undefined {
  if (deadline === undefined) return deadlineMs === undefined ? undefined : inRange("deadlineMs", deadlineMs);
  if (deadlineMs !== undefined) throw invalidRequest("deadline", "and deadlineMs are alternatives; give one of them");
  return inRange("deadline", typeof deadline === "string" ? parseDurationMs(deadline) : Number.NaN);
}

function inRange(name: string, ms: number): number {
  if (typeof ms === "number" && ms >= 1 && ms <= maxDeadlineMs) return ms;
  const wanted =
    name === "deadline" ? "a duration from 1ms to 1m, such as 25ms" : `a number from 1 to ${maxDeadlineMs}`;
  throw invalidRequest(name, `must be ${wanted}`);
}

function parseDurationMs(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    if (error instanceof SluiceError) return Number.NaN;
    throw error;
  }
}
