import { describeValue, type Invalid, type Reading } from "../shape/reading.ts";
import type { Shape } from "../shape/shape.ts";

const instantForm =
  /^(\d{4})-(\d\d)-(\d\d)(?:(?:[Tt]|[ \t]+)(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?[ \t]*(?:([Zz])|([+-])(\d\d?)(?::?(\d\d))?)?)?$/;

const example = "2026-12-01T00:00:00Z";

/** A moment in time, in epoch milliseconds: a date, or a date and time with its zone. A date alone begins in UTC. */
export const instant: Shape<number> = {
  name: `a date and time with its zone, such as ${example}`,
  schema: { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}", examples: [example] },
  read(value, reading) {
    if (value instanceof Date && Number.isFinite(value.getTime())) return value.getTime();
    const parts = typeof value === "string" ? instantForm.exec(value.trim()) : null;
    return parts === null ? notAnInstant(value, reading) : instantFromParts(value, parts, reading);
  },
};

function instantFromParts(value: unknown, parts: RegExpExecArray, reading: Reading): number | Invalid {
  const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map((part) => Number(parts[part] ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const fraction = Number(`0.${parts[7] ?? 0}`);
  const [utc, sign, offsetHour = 0, offsetMinute = 0] = [parts[8], parts[9], parts[10], parts[11]];
  if (parts[4] !== undefined && utc === undefined && sign === undefined)
    return reading.problem(
      `must say its time zone, but is ${describeValue(value)}; add Z for UTC, or an offset like +02:00`,
    );
  const exists =
    year >= 1970 &&
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= daysInMonth(year, month) &&
    hour < 24 &&
    minute < 60 &&
    second < 60;
  if (!exists || Number(offsetHour) > 15 || Number(offsetMinute) > 59) return notAnInstant(value, reading);
  const offsetMinutes = (sign === "-" ? -1 : 1) * (Number(offsetHour) * 60 + Number(offsetMinute));
  return Date.UTC(year, month - 1, day, hour, minute - offsetMinutes, second, Math.floor(fraction * 1000));
}

function notAnInstant(value: unknown, reading: Reading): Invalid {
  return reading.problem(`must be a date and time with its zone, such as ${example}, but is ${describeValue(value)}`);
}

function daysInMonth(year: number, month: number): number {
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]!;
}
