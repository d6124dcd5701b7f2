import { RateLimitUnit } from "@sluice/protocol/envoy";
import type { GivenLimit } from "sluice";
import type { FailMode } from "sluice/internal";

const dayMs = 24 * 60 * 60 * 1000;

const lengths: ReadonlyMap<number, { readonly word: string; readonly ms: number }> = new Map([
  [RateLimitUnit.SECOND, { word: "second", ms: 1_000 }],
  [RateLimitUnit.MINUTE, { word: "minute", ms: 60_000 }],
  [RateLimitUnit.HOUR, { word: "hour", ms: 3_600_000 }],
  [RateLimitUnit.DAY, { word: "day", ms: dayMs }],
  [RateLimitUnit.MONTH, { word: "month", ms: 30 * dayMs }],
  [RateLimitUnit.YEAR, { word: "year", ms: 365 * dayMs }],
]);

/** The most that are remembered: proxies bring along a few, and hostile ones any number. */
const maxRemembered = 1_000;

/** In two generations: when one is full, the older is forgotten. */
let recent = new Map<string, GivenLimit>();
let older = new Map<string, GivenLimit>();

/**
 * The limit that a proxy brings along. The same numbers give the same object, under which its compiled form is
 * remembered. Undefined if there is no such unit.
 */
export function findOverrideLimit(requestsPerUnit: number, unit: number, onFailure: FailMode): GivenLimit | undefined {
  const key = `${requestsPerUnit}/${unit}/${onFailure}`;
  const known = recent.get(key);
  if (known !== undefined) return known;
  const length = lengths.get(unit);
  if (length === undefined) return undefined;
  const limit = older.get(key) ?? createLimit(requestsPerUnit, length, onFailure);
  if (recent.size >= maxRemembered) {
    older = recent;
    recent = new Map();
  }
  recent.set(key, limit);
  return limit;
}

/** Counters are named by the unit, so that another number of requests continues them, and another unit does not. */
function createLimit(limit: number, { word, ms }: { word: string; ms: number }, onFailure: FailMode): GivenLimit {
  return {
    name: `envoy.override.${word}`,
    by: ["descriptor"],
    algorithm: "fixed_window",
    window: { limit, per: { kind: "ms", ms }, burst: limit },
    onFailure,
  };
}
