const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const dayName = "(?:mon|tue|wed|thu|fri|sat|sun)";
const time = "(\\d{2}):(\\d{2}):(\\d{2})";
/** `Sun, 06 Nov 1994 08:49:37 GMT` */
const fixdate = new RegExp(`^${dayName}, (\\d{2}) ([a-z]{3}) (\\d{4}) ${time} gmt$`, "i");
/** `Sunday, 06-Nov-94 08:49:37 GMT` */
const rfc850 = new RegExp(`^${dayName}[a-z]{3,6}, (\\d{2})-([a-z]{3})-(\\d{2}) ${time} gmt$`, "i");
/** `Sun Nov  6 08:49:37 1994` */
const asctime = new RegExp(`^${dayName} ([a-z]{3}) ([ \\d]\\d) ${time} (\\d{4})$`, "i");
/** `2026-01-31T12:00:00.5Z`, or with an offset */
const iso = /^(\d{4})-(\d{2})-(\d{2})[tT ](\d{2}):(\d{2}):(\d{2})(\.\d{1,9})?([zZ]|[+-]\d{2}:?\d{2})$/;

/** Epoch milliseconds of a date in one of the three forms of HTTP, or undefined. */
export function parseHttpDate(text: string, nowMs: number): number | undefined {
  let parts = fixdate.exec(text);
  if (parts !== null) return momentFromParts(parts[3], parts[2], parts[1], parts.slice(4));
  parts = asctime.exec(text);
  if (parts !== null) return momentFromParts(parts[6], parts[1], parts[2], parts.slice(3));
  parts = rfc850.exec(text);
  if (parts === null) return undefined;
  // HTTP: a two-digit year is at most 50 years ahead.
  const thisYear = new Date(nowMs).getUTCFullYear();
  let year = Math.floor(thisYear / 100) * 100 + Number(parts[3]);
  if (year > thisYear + 50) year -= 100;
  return momentFromParts(year, parts[2], parts[1], parts.slice(4));
}

/** Epoch milliseconds of a date as RFC 3339 writes it, or undefined. */
export function parseIsoDate(text: string): number | undefined {
  const parts = iso.exec(text);
  if (parts === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = "0", zone = "Z"] = parts;
  const moment = momentFromParts(year, months[Number(month) - 1], day, [hour, minute, second]);
  const offset = /^([+-])(\d{2}):?(\d{2})$/.exec(zone);
  const offsetMinutes = offset === null ? 0 : Number(`${offset[1]}1`) * (Number(offset[2]) * 60 + Number(offset[3]));
  return moment === undefined ? undefined : moment + Number(fraction) * 1000 - offsetMinutes * 60_000;
}

function momentFromParts(
  year: string | number | undefined,
  monthName: string | undefined,
  day: string | undefined,
  [hour, minute, second]: readonly (string | undefined)[],
): number | undefined {
  const month = months.indexOf(monthName?.toLowerCase() ?? "");
  if (month < 0) return undefined;
  const moment = Date.UTC(Number(year), month, Number(day), Number(hour), Number(minute), Number(second));
  // Day 31 of a month with 30 days would roll over: not a date.
  const sameDay = new Date(moment).getUTCDate() === Number(day);
  const inRange = Number(hour) < 24 && Number(minute) < 60 && Number(second) <= 60;
  return sameDay && inRange && Number(year) >= 1970 ? moment : undefined;
}
