import type { GivenLimit } from "sluice";
import type { Arguments } from "./arguments.ts";
import { invalidWord } from "./invalid-word.ts";
import { readWhole } from "./read-whole.ts";

/** A limit as CL.THROTTLE writes it, prepared. */
export interface ThrottleLimit {
  /** For a check: kept, because its compiled form is remembered with it. */
  readonly limits: readonly [GivenLimit];
  /** max_burst + 1. */
  readonly capacity: number;
  /** Whether the time that one unit is worth is counted exactly, to the nanosecond. */
  readonly isExact: boolean;
}

/** Recently used limits, in bounded number. */
export interface ThrottleLimits {
  /** The limit in the arguments 2, 3 and 4. Throws `invalid_request`, naming what is wrong. */
  find(args: Arguments): ThrottleLimit;
}

/** The same bounds as for windows of policies. */
const maxAmount = 1e12;
const maxPerSecond = 1e7;
const maxPeriodSeconds = 3_653 * 86_400;
const maxDrainSeconds = 36_525 * 86_400;

/** Steps per millisecond of the time grid. */
const stepsPerMs = 2 ** 20;

/** The name of CL.THROTTLE's counters among those of limits that callers bring along. */
export const throttleName = "cl.throttle";

/** Two generations: used limits stay, unused ones are gone after as many others. */
export function createThrottleLimits(maxLimits = 2_000): ThrottleLimits {
  let recent = new Map<string, ThrottleLimit>();
  let older = new Map<string, ThrottleLimit>();
  return {
    find(args): ThrottleLimit {
      // The bytes as sent are the key: numbers are parsed once.
      const sent = args.span(2, 4);
      const known = recent.get(sent);
      if (known !== undefined) return known;
      const limit = older.get(sent) ?? readLimit(args);
      if (recent.size >= maxLimits / 2) {
        older = recent;
        recent = new Map();
      }
      recent.set(sent, limit);
      return limit;
    },
  };
}

function readLimit(args: Arguments): ThrottleLimit {
  const maxBurst = readWhole(args.text(2), "max_burst", 0, maxAmount - 1);
  const count = readWhole(args.text(3), "count", 1, maxAmount);
  const period = readWhole(args.text(4), "period", 1, maxPeriodSeconds);
  if (count / period > maxPerSecond) throw invalidWord("count", `must be at most ${maxPerSecond} a second`);
  const capacity = maxBurst + 1;
  if ((capacity * period) / count > maxDrainSeconds)
    throw invalidWord("max_burst", "must be such that a full burst flows out again within 100 years");
  const ms = period * 1_000;
  const limit: GivenLimit = {
    name: throttleName,
    by: ["key"],
    algorithm: "gcra",
    window: { limit: count, per: { kind: "ms", ms }, burst: capacity },
    // There is no policy to say otherwise.
    onFailure: "open",
  };
  return { limits: [limit], capacity, isExact: Number.isInteger((ms * stepsPerMs) / count) };
}
