import type { Calendar, CalendarWindow } from "../limits/compiled-limit.ts";

const dayMs = 24 * 60 * 60 * 1000;

const calendars = new Map<string, Calendar>();

/** The one calendar of a unit and a time zone, shared because `Intl`'s objects are not small. */
export function findCalendar(unit: "day" | "month", timeZone: string): Calendar {
  const name = `${unit} ${timeZone}`;
  let calendar = calendars.get(name);
  if (calendar === undefined) {
    calendar = createCalendar(unit, timeZone);
    calendars.set(name, calendar);
  }
  return calendar;
}

/**
 * Days and months of a time zone, as `Intl` knows it. Days are 23 or 25 hours long when clocks change. The last window
 * found is remembered: almost every question is about the same one.
 */
function createCalendar(unit: "day" | "month", timeZone: string): Calendar {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    calendar: "gregory",
    numberingSystem: "latn",
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });

  function localTime(epochMs: number): { year: number; month: number; day: number; asUtcMs: number } {
    const part: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(epochMs)) part[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
    return { year, month, day, asUtcMs: Date.UTC(year, month - 1, day, hour, minute, second) };
  }

  /** The first instant whose local time is at or after this local midnight. */
  function midnight(year: number, month: number, day: number): number {
    const wantedMs = Date.UTC(year, month - 1, day);
    // The zone's offset near there, from either side of it; a skipped midnight begins where the skip ends.
    let candidate = Number.POSITIVE_INFINITY;
    for (const probeMs of [wantedMs - dayMs, wantedMs + dayMs]) {
      const offsetMs = localTime(probeMs).asUtcMs - probeMs;
      const instant = wantedMs - offsetMs;
      if (localTime(instant).asUtcMs >= wantedMs && instant < candidate) candidate = instant;
    }
    return candidate;
  }

  let known: CalendarWindow = { startMs: 0, endMs: 0 };
  return (epochMs) => {
    if (epochMs >= known.startMs && epochMs < known.endMs) return known;
    const { year, month, day } = localTime(epochMs);
    known =
      unit === "day"
        ? { startMs: midnight(year, month, day), endMs: midnight(year, month, day + 1) }
        : { startMs: midnight(year, month, 1), endMs: midnight(year, month + 1, 1) };
    return known;
  };
}
