import { maxDeadlineMs } from "sluice/internal";
import { DeadlineOver } from "./errors.ts";

/** Left for the way back, so that an answer by `on_failure` arrives before the caller gives up. */
const wayBackMs = 5;

/** What is left of a caller's patience for `CheckRequest.deadlineMs`. Throws `DeadlineOver` if nothing is. */
export function deadlineFrom(leftMs: number): number | undefined {
  if (leftMs === Infinity) return undefined;
  if (leftMs <= 0) throw new DeadlineOver("the deadline was over before anything was decided; nothing was charged");
  return Math.min(Math.max(1, Math.floor(leftMs - Math.min(wayBackMs, leftMs / 4))), maxDeadlineMs);
}
