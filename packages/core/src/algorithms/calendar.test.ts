import { describe, expect, it } from "vitest";
import { findCalendar } from "./calendar.ts";

const at = (iso: string): number => Date.parse(iso);
const shown = (unit: "day" | "month", zone: string, iso: string): string[] => {
  const { startMs, endMs } = findCalendar(unit, zone)(at(iso));
  return [new Date(startMs).toISOString(), new Date(endMs).toISOString()];
};

describe("calendar windows", () => {
  it.each([
    ["day", "UTC", "2026-03-01T12:00:00Z", "2026-03-01T00:00:00.000Z", "2026-03-02T00:00:00.000Z", "an ordinary day"],
    [
      "day",
      "Asia/Kolkata",
      "2026-03-01T18:30:00Z",
      "2026-03-01T18:30:00.000Z",
      "2026-03-02T18:30:00.000Z",
      "half an hour off",
    ],
    [
      "day",
      "Europe/Berlin",
      "2026-03-29T12:00:00Z",
      "2026-03-28T23:00:00.000Z",
      "2026-03-29T22:00:00.000Z",
      "23 hours long",
    ],
    [
      "day",
      "Europe/Berlin",
      "2026-10-25T12:00:00Z",
      "2026-10-24T22:00:00.000Z",
      "2026-10-25T23:00:00.000Z",
      "25 hours long",
    ],
    [
      "day",
      "America/Havana",
      "2026-03-08T12:00:00Z",
      "2026-03-08T05:00:00.000Z",
      "2026-03-09T04:00:00.000Z",
      "its midnight is skipped: begins at 01:00",
    ],
    [
      "day",
      "Asia/Beirut",
      "2026-03-29T12:00:00Z",
      "2026-03-28T22:00:00.000Z",
      "2026-03-29T21:00:00.000Z",
      "its midnight is skipped",
    ],
    [
      "day",
      "America/Havana",
      "2026-11-01T12:00:00Z",
      "2026-11-01T04:00:00.000Z",
      "2026-11-02T05:00:00.000Z",
      "its midnight comes twice: begins at the first",
    ],
    ["month", "UTC", "2024-02-15T00:00:00Z", "2024-02-01T00:00:00.000Z", "2024-03-01T00:00:00.000Z", "a leap February"],
    [
      "month",
      "America/New_York",
      "2026-12-31T23:00:00Z",
      "2026-12-01T05:00:00.000Z",
      "2027-01-01T05:00:00.000Z",
      "over a year's end",
    ],
    [
      "month",
      "Pacific/Kiritimati",
      "2026-01-31T09:59:59Z",
      "2025-12-31T10:00:00.000Z",
      "2026-01-31T10:00:00.000Z",
      "fourteen hours ahead",
    ],
    [
      "month",
      "Australia/Lord_Howe",
      "2026-04-10T00:00:00Z",
      "2026-03-31T13:00:00.000Z",
      "2026-04-30T13:30:00.000Z",
      "clocks change by half an hour",
    ],
  ] as const)("%s in %s at %s: from %s to %s, %s", (unit, zone, iso, start, end, _why) => {
    expect(shown(unit, zone, iso)).toEqual([start, end]);
  });

  it("follow one another without a gap for two years, in zones of every kind", () => {
    for (const zone of [
      "UTC",
      "Europe/Berlin",
      "America/Havana",
      "Asia/Beirut",
      "Africa/Cairo",
      "America/Asuncion",
      "Australia/Lord_Howe",
      "America/St_Johns",
      "Pacific/Apia",
    ]) {
      const calendar = findCalendar("day", zone);
      let epochMs = at("2025-06-01T00:00:00Z");
      for (let days = 0; days < 730; days++) {
        const { startMs, endMs } = calendar(epochMs);
        if (!(startMs <= epochMs && epochMs < endMs))
          expect.fail(`${zone}: ${new Date(epochMs).toISOString()} lies outside its day`);
        const hours = (endMs - startMs) / 3_600_000;
        if (hours < 22 || hours > 26)
          expect.fail(`${zone}: a day of ${hours} hours at ${new Date(epochMs).toISOString()}`);
        expect(calendar(endMs).startMs).toBe(endMs);
        epochMs = endMs;
      }
    }
  });
});
