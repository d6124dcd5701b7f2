/** A moment as a log writes it. */
export interface LoggedTime {
  readonly timeMs: number;
  /** Whether it has no fraction of a second. */
  readonly wholeSecond: boolean;
}

const iso = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?\s*(Z|[+-]\d\d:?\d\d)?$/i;
const clf = /^(\d\d)\/(\w{3})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-]\d\d)(\d\d)$/;
const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/**
 * Reads a time that is written as ISO 8601, as in common logs, or as a number since 1970: seconds, milliseconds,
 * microseconds or nanoseconds, by its size. Without a zone it is UTC. Undefined if it is none of these.
 */
export function readTime(value: unknown): LoggedTime | undefined {
  if (typeof value === "number") return timeFromNumber(value, Number.isInteger(value));
  if (typeof value !== "string") return undefined;
  const found = iso.exec(value);
  if (found !== null) return timeFromIso(found);
  const common = clf.exec(value);
  if (common !== null) return timeFromClf(common);
  if (/^\d+(\.\d+)?$/.test(value)) return timeFromNumber(Number(value), !value.includes("."));
  return undefined;
}

/** Seconds reach 10¹¹ in the year 5138, and milliseconds passed it in 1973. */
const leastMs = 1e11;

function timeFromNumber(value: number, isWhole: boolean): LoggedTime | undefined {
  if (!Number.isFinite(value) || value <= 0) return undefined;
  if (value < leastMs) return { timeMs: value * 1000, wholeSecond: isWhole };
  if (value < leastMs * 1e3) return { timeMs: value, wholeSecond: false };
  if (value < leastMs * 1e6) return { timeMs: value / 1e3, wholeSecond: false };
  return { timeMs: value / 1e6, wholeSecond: false };
}

function timeFromIso([, year, month, day, hour, minute, second, fraction, zone]: RegExpExecArray):
  | LoggedTime
  | undefined {
  const wholeMs = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  const fractionMs = fraction === undefined ? 0 : Number(`0.${fraction}`) * 1000;
  const timeMs = wholeMs + fractionMs - zoneMs(zone);
  return Number.isFinite(timeMs) ? { timeMs, wholeSecond: fraction === undefined } : undefined;
}

function timeFromClf([, day, name = "", year, hour, minute, second, hours, minutes]: RegExpExecArray):
  | LoggedTime
  | undefined {
  const month = months.indexOf(name.toLowerCase());
  if (month === -1) return undefined;
  const wholeMs = Date.UTC(Number(year), month, Number(day), Number(hour), Number(minute), Number(second));
  return { timeMs: wholeMs - zoneMs(`${hours}${minutes}`), wholeSecond: true };
}

/** `+0530`, `+05:30` or `Z` as milliseconds. */
function zoneMs(zone: string = "Z"): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? [];
  if (sign === undefined) return 0;
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return sign === "-" ? -offsetMs : offsetMs;
}
