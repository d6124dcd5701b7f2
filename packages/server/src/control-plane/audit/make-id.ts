import { randomBytes } from "node:crypto";

let last = 0;
let count = 0;

/**
 * An id that sorts by time: milliseconds, a counter within one millisecond, and a part that differs between processes.
 * It has only digits and lower-case letters, so that every database sorts it alike.
 */
export function makeTimedId(atMs: number): string {
  count = atMs === last ? count + 1 : 0;
  last = atMs;
  const time = Math.trunc(atMs).toString(36).padStart(9, "0");
  return `${time}${count.toString(36).padStart(4, "0")}${randomBytes(5).toString("hex")}`;
}

/** An id that cannot be guessed and does not repeat. */
export function makeRandomId(): string {
  return randomBytes(12).toString("hex");
}
