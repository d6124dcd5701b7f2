import { describeValue, type Invalid, type Reading } from "../shape/reading.ts";
import { parseShape, type Shape } from "../shape/shape.ts";

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
export const dayMs: number = 24 * hourMs;
const weekMs = 7 * dayMs;

const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: secondMs,
  m: minuteMs,
  h: hourMs,
  d: dayMs,
  w: weekMs,
};

const unitWords: Readonly<Record<string, string>> = {
  millisecond: "ms",
  sec: "s",
  second: "s",
  min: "m",
  minute: "m",
  hour: "h",
  day: "d",
  week: "w",
};

const durationForm = /^(?:(\d{1,15})(?:\.(\d{1,15}))?)?\s*([a-z]+)$/;

export interface DurationOptions {
  /** Absent: 1. */
  readonly minMs?: number;
  readonly maxMs: number;
}

/** `500ms`, `1.5m`, `2h`, `week`, in whole milliseconds. A unit alone means one of it. */
export function duration({ minMs = 1, maxMs }: DurationOptions): Shape<number> {
  return {
    name: "a duration, such as 500ms, 10s or 1.5h",
    schema: {
      type: "string",
      pattern: "^([0-9]+(\\.[0-9]+)?)?\\s*[a-z]+$",
      examples: ["500ms", "1s", "10m", "1.5h", "1d"],
    },
    read(value, reading) {
      const ms = readDuration(value, reading);
      if (typeof ms !== "number" || (ms >= minMs && ms <= maxMs)) return ms;
      return reading.problem(
        `must last from ${renderDuration(minMs)} to ${renderDuration(maxMs)}, but is ${describeValue(value)}`,
      );
    },
  };
}

function readDuration(value: unknown, reading: Reading): number | Invalid {
  if (typeof value === "number")
    return reading.problem(
      `must be a duration with a unit, but is the number ${value}; write "${value}s" or "${value}ms"`,
    );
  const parts = typeof value === "string" ? durationForm.exec(value.trim()) : null;
  if (parts === null)
    return reading.problem(`must be a duration, such as 500ms, 10s, 1.5h or 1d, but is ${describeValue(value)}`);
  const [, whole = "1", fraction = "", word = ""] = parts;
  const unitMs = findUnitMs(word);
  if (unitMs === undefined)
    return reading.problem(`has an unknown unit, ${describeValue(word)}; units are ms, s, m, h, d and w`);
  // Whole numbers throughout: 1.001s is 1001 ms, which 1.001 × 1000 in floating point is not.
  const scaled = BigInt(whole + fraction) * BigInt(unitMs);
  const scale = 10n ** BigInt(fraction.length);
  if (scaled % scale !== 0n) return reading.problem(`must be whole milliseconds, but is ${describeValue(value)}`);
  return Number(scaled / scale);
}

function findUnitMs(word: string): number | undefined {
  const singular = word.length > 2 && word.endsWith("s") ? word.slice(0, -1) : word;
  const unit = Object.hasOwn(unitWords, singular) ? unitWords[singular]! : word;
  return Object.hasOwn(unitsMs, unit) ? unitsMs[unit] : undefined;
}

/** Milliseconds of a duration of 0 ms to 100 000 days. Throws `invalid_policies`. */
export function parseDuration(value: unknown): number {
  return parseShape(duration({ minMs: 0, maxMs: 100_000 * dayMs }), value, "invalid_policies", "a duration");
}

/** In the largest unit that leaves no fraction: `90s`, `1d`, `1500ms`. `parseDuration` reads it back. */
export function renderDuration(ms: number): string {
  const [unit, unitMs] = Object.entries(unitsMs).findLast(([, length]) => ms >= length && ms % length === 0) ?? [
    "ms",
    1,
  ];
  return `${ms / unitMs}${unit}`;
}
