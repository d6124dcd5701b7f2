import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SluiceError } from "../errors.ts";
import { defaultBurst, parseWindow } from "./parse-window.ts";
import { type Algorithm, algorithms, type Per, type Window } from "./policy.ts";
import { renderWindow } from "./render-window.ts";

function ms(length: number): Per {
  return { kind: "ms", ms: length };
}

function findProblems(value: unknown, algorithm?: Algorithm): string[] {
  try {
    parseWindow(value, algorithm);
    return [];
  } catch (error) {
    return (error as SluiceError).problems.map(({ path, message }) => `${path.join(".")}: ${message}`);
  }
}

describe("parseWindow, in short", () => {
  it.each<[string, Window]>([
    ["100/s burst 200", { limit: 100, per: ms(1_000), burst: 200 }],
    ["3000/m", { limit: 3_000, per: ms(60_000), burst: 3_000 }],
    ["100k/h", { limit: 100_000, per: ms(3_600_000), burst: 100_000 }],
    ["1.5M/d", { limit: 1_500_000, per: ms(86_400_000), burst: 1_500_000 }],
    ["10/500ms", { limit: 10, per: ms(500), burst: 10 }],
    ["5/1.9s", { limit: 5, per: ms(1_900), burst: 5 }],
    ["16.67/s", { limit: 16.67, per: ms(1_000), burst: 16.67 }],
    ["10_000/day", { limit: 10_000, per: ms(86_400_000), burst: 10_000 }],
    ["1/week", { limit: 1, per: ms(604_800_000), burst: 1 }],
    ["100 / s  burst  1k", { limit: 100, per: ms(1_000), burst: 1_000 }],
    ["0.5/s", { limit: 0.5, per: ms(1_000), burst: 1 }],
    [
      "1000/day in Europe/Berlin",
      { limit: 1_000, per: { kind: "calendar", unit: "day", timeZone: "Europe/Berlin" }, burst: 1_000 },
    ],
    ["1000/d in UTC", { limit: 1_000, per: { kind: "calendar", unit: "day", timeZone: "UTC" }, burst: 1_000 }],
    ["10k/month in UTC", { limit: 10_000, per: { kind: "calendar", unit: "month", timeZone: "UTC" }, burst: 10_000 }],
    ["100 once", { limit: 100, per: { kind: "never" }, burst: 100 }],
    ["0/s", { limit: 0, per: ms(1_000), burst: 0 }],
    ["0/s burst 5", { limit: 5, per: { kind: "never" }, burst: 5 }],
  ])("reads %s", (written, window) => {
    expect(parseWindow(written)).toEqual(window);
  });

  it("reads amounts exactly even if multiplying would not", () => {
    expect(1.005 * 1000).not.toBe(1005);
    expect(parseWindow("1.005k/s").limit).toBe(1005);
  });

  it.each([
    ["100", 'has no duration: write "100/s"'],
    [100, 'has no duration: write "100/s"'],
    ["", "must have 1 to 128 characters"],
    ["a lot", "must be a window"],
    ["100/s burst", "must be a window"],
    ["100/s bust 5", "must be a window"],
    ["-5/s", "must have numbers such as 100"],
    ["3m/s", "100k (thousands) or 1.5M (millions)"],
    ["1e3/s", "must have numbers such as 100"],
    ["1__0/s", "must have numbers such as 100"],
    ["100/x", 'has an unknown unit, "x"'],
    ["100/0s", "must last from 1ms to 3653d"],
    ["100/0.5ms", "must be whole milliseconds"],
    ["100/600w", "must last from 1ms to 3653d"],
    ["5/month", 'needs a time zone to know when a month begins: write "month in UTC"'],
    ["5/week in UTC", "use day or month"],
    ["5/day in Europe/Berln", "did you mean Europe/Berlin?"],
    ["5/day in Nowhere/Land", 'has an unknown time zone, "Nowhere/Land"'],
    ["1.5 once", "of a one-off quota must be a whole number"],
    ["1.5/day in UTC", "of a calendar window must be a whole number"],
    ["10/day in UTC burst 5", "does not belong to a calendar window"],
    ["2M/ms", "must be at most 10000000 a second"],
    ["1000001M/d", "must be at most 1000000000000"],
    ["10/s burst 0.5", "must be from 1 to 1000000000000, but is 0.5"],
    ["10/s burst 0", "must be from 1 to 1000000000000, but is 0"],
    ["1/d burst 40k", "flows out again within 100 years"],
    [null, "must be a window"],
    [["1/s"], "must be a window"],
  ])("refuses %j and says why", (written, message) => {
    expect(findProblems(written).join()).toContain(message);
  });

  it("takes the largest that it allows", () => {
    expect(findProblems("10k/ms")).toEqual([]);
    expect(findProblems("1/3653d")).toEqual([]);
    expect(findProblems("800000M/d burst 1000000M")).toEqual([]);
    expect(findProblems("1/d burst 36525")).toEqual([]);
    expect(findProblems("1/d burst 36526")).toHaveLength(1);
  });
});

describe("parseWindow, in full", () => {
  it("reads the same windows", () => {
    expect(parseWindow({ limit: 100, per: "1s", burst: 200 })).toEqual(parseWindow("100/s burst 200"));
    expect(parseWindow({ limit: "100k", per: "h" })).toEqual(parseWindow("100k/h"));
    expect(parseWindow({ limit: 100, per: "never" })).toEqual(parseWindow("100 once"));
    expect(parseWindow({ limit: 0, per: "1s", burst: 7 })).toEqual(parseWindow("7 once"));
    expect(parseWindow({ limit: 5, per: { calendar: "month", time_zone: "UTC" } })).toEqual(
      parseWindow("5/month in UTC"),
    );
    expect(parseWindow({ limit: 5, per: "day in Europe/Berlin" })).toEqual(parseWindow("5/day in Europe/Berlin"));
  });

  it("keeps a name", () => {
    expect(parseWindow({ limit: 1, per: "1s", name: "steady" }).name).toBe("steady");
    expect(findProblems({ limit: 1, per: "1s", name: "a|b" })).toHaveLength(1);
  });

  it("points at each field that is wrong, all at once", () => {
    expect(findProblems({ limit: -1, per: 60, burts: 5 })).toEqual([
      "burts: is not a known key; did you mean burst?",
      "limit: must be a number from 0 to 1000000000000, but is -1",
      'per: must be a duration with a unit, but is the number 60; write "60s" or "60ms"',
    ]);
    expect(findProblems({ limit: 1 })).toEqual([
      "per: is missing; it must be a duration such as 1s, the word never, or { calendar: day or month, time_zone }",
    ]);
    expect(findProblems({ limit: 1, per: { calendar: "week", time_zone: "Mars" } })).toHaveLength(2);
    expect(findProblems({ limit: 5, per: "never", burst: 5 })).toEqual([
      "burst: does not belong to a one-off quota; leave it out",
    ]);
  });
});

describe("windows and algorithms", () => {
  it.each(["fixed_window", "sliding_window", "sliding_log"] as const)(
    "gives %s no burst and no fractions",
    (algorithm) => {
      expect(findProblems("100/s burst 200", algorithm)).toEqual([
        `burst: does not belong to ${algorithm}: only gcra, token_bucket, leaky_bucket have a burst; leave it out or change the algorithm`,
      ]);
      expect(findProblems("16.67/s", algorithm)).toEqual([
        `limit: must be a whole number for ${algorithm}, but is 16.67; use a longer window, or algorithm gcra`,
      ]);
      expect(findProblems("0.5/s", algorithm)).toHaveLength(1);
      expect(findProblems("100/s", algorithm)).toEqual([]);
    },
  );

  it.each(["gcra", "token_bucket", "leaky_bucket"] as const)("gives %s both", (algorithm) => {
    expect(findProblems("16.67/s burst 200", algorithm)).toEqual([]);
  });

  it("keeps calendar windows for fixed windows", () => {
    for (const algorithm of algorithms)
      expect(findProblems("5/day in UTC", algorithm)).toHaveLength(algorithm === "fixed_window" ? 0 : 1);
  });

  it("lets every algorithm have a one-off quota", () => {
    for (const algorithm of algorithms) expect(findProblems("100 once", algorithm)).toEqual([]);
  });
});

describe("renderWindow", () => {
  it.each([
    "100/s burst 200",
    "3000/m",
    "100k/h",
    "1.5M/d",
    "10/500ms",
    "5/1900ms",
    "16.67/s",
    "0.5/s",
    "0/s",
    "100 once",
    "1000/day in Europe/Berlin",
    "10k/month in UTC",
  ])("writes %s as people do", (written) => {
    expect(renderWindow(parseWindow(written))).toBe(written);
  });

  it("writes what parseWindow reads back", () => {
    const zones = fc.constantFrom("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu");
    const whole = fc.integer({ min: 0, max: 1e12 });
    const limit = fc.oneof(whole, fc.double({ min: 0.001, max: 1e5, noNaN: true }), fc.constantFrom(1e-7, 3.5e-9));
    const length = fc.oneof(
      fc.integer({ min: 1, max: 3_653 * 86_400_000 }),
      fc.constantFrom(1, 1_000, 60_000, 86_400_000),
    );
    const flowing = fc
      .record({ limit, ms: length, burst: fc.option(fc.double({ min: 1, max: 1e12, noNaN: true })) })
      .filter(({ limit, ms, burst }) => {
        const drainMs = limit === 0 ? 0 : ((burst ?? defaultBurst(limit)) * ms) / limit;
        return (limit * 1000) / ms <= 1e7 && drainMs <= 36_525 * 86_400_000 && (limit > 0 || burst === null);
      })
      .map(({ limit, ms: length, burst }): Window => ({ limit, per: ms(length), burst: burst ?? defaultBurst(limit) }));
    const calendar = fc
      .record({ limit: whole, unit: fc.constantFrom("day" as const, "month" as const), timeZone: zones })
      .map(({ limit, unit, timeZone }): Window => ({ limit, per: { kind: "calendar", unit, timeZone }, burst: limit }));
    const once = whole.map((limit): Window => ({ limit, per: { kind: "never" }, burst: limit }));
    fc.assert(
      fc.property(fc.oneof(flowing, calendar, once), (window) => {
        expect(parseWindow(renderWindow(window))).toEqual(window);
      }),
      { numRuns: 500 },
    );
  });
});

describe("parseWindow's errors", () => {
  it("are invalid_policies", () => {
    expect(() => parseWindow("x")).toThrow(SluiceError);
    expect(() => parseWindow("x")).toThrow(/^1 problem in a window:\n/);
  });
});
