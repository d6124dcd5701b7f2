import { describe, expect, it } from "vitest";
import { parseRollout } from "./parse-rollout.ts";
import { parseSteps } from "./parse-steps.ts";
import { parseSubject } from "./parse-subject.ts";
import { parseDurationFlag, parseSince, parseUntil } from "./parse-time.ts";
import { parseCount, parseVersion } from "./parse-version.ts";

const nowMs = Date.parse("2026-01-31T12:00:00Z");
const minuteMs = 60_000;

describe("steps of a rollout", () => {
  it.each([
    [
      "1%:10m,10%:5m,100%",
      [
        [1, 10 * minuteMs],
        [10, 5 * minuteMs],
        [100, 5 * minuteMs],
      ],
    ],
    [
      "0.5 : 90s, 20, 100:1h",
      [
        [0.5, 90_000],
        [20, 0],
        [100, 60 * minuteMs],
      ],
    ],
    [
      "50%,100%",
      [
        [50, 0],
        [100, 0],
      ],
    ],
    ["100%", [[100, 10 * minuteMs]]],
    ["100%:hand", [[100, 0]]],
  ])("%s are read", (text, steps) => {
    expect(parseSteps(text).map(({ percent, hold_ms }) => [percent, hold_ms])).toEqual(steps);
  });

  it.each(["", "0%", "101%", "10%:10m,5%", "10%,10%", "ten", "50%", "0.001%,100%", "10%:soon", "10%:0s", "p.yaml"])(
    "%j are refused",
    (text) => {
      expect(() => parseSteps(text)).toThrow(/^--rollout is/);
    },
  );

  it("are repeated as they were typed where the duration of one is wrong", () => {
    expect(() => parseSteps("10%:soon,100%")).toThrow(/^--rollout is "10%:soon,100%": "soon" is not a duration/);
  });

  it("need not reach all subjects in shadow mode", () => {
    expect(parseSteps("5%:1h", true)).toEqual([{ percent: 5, hold_ms: 60 * minuteMs }]);
  });

  it("come with what else is said of a rollout, and mean nothing without one", () => {
    expect(parseRollout({}, nowMs)).toBeUndefined();
    expect(parseRollout({ rollout: true }, nowMs)).toEqual({});
    const flags = { rollout: "100%", by: "ip", shadow: true, start: "1h", observe: "0s", expectMoreDenials: true };
    expect(parseRollout(flags, nowMs)).toEqual({
      steps: [{ percent: 100, hold_ms: 10 * minuteMs }],
      by: "ip",
      shadow: true,
      starts_ms: nowMs + 60 * minuteMs,
      observe_for_ms: 0,
      expect_more_denials: true,
    });
    expect(() => parseRollout({ shadow: true }, nowMs)).toThrow("--shadow says how a rollout goes; add --rollout");
    expect(() => parseRollout({ expectMoreDenials: true }, nowMs)).toThrow("--expect-more-denials");
  });

  it("refuse to observe for less than a comparison needs, but for nothing at all", () => {
    expect(parseRollout({ rollout: true, observe: "5m" }, nowMs)).toEqual({ observe_for_ms: 5 * minuteMs });
    expect(() => parseRollout({ rollout: true, observe: "1m" }, nowMs)).toThrow(
      '--observe is "1m": too short to compare the first step with. Write 5m or more, or 0',
    );
  });
});

describe("times on a command line", () => {
  it("are whiles, moments to come, and moments past", () => {
    expect(parseDurationFlag("--for", "90s")).toBe(90_000);
    expect(parseUntil("--until", "2h", nowMs)).toBe(nowMs + 120 * minuteMs);
    expect(parseUntil("--until", "2026-02-01", nowMs)).toBe(Date.parse("2026-02-01"));
    expect(parseSince("--since", "2h", nowMs)).toBe(nowMs - 120 * minuteMs);
    expect(parseSince("--since", "2025-12-31", nowMs)).toBe(Date.parse("2025-12-31"));
  });

  it("are refused with the option that they are for", () => {
    for (const text of ["", "h", "0s", "-1h", "soon"])
      expect(() => parseDurationFlag("--for", text)).toThrow(/^--for is/);
    for (const text of ["2025-01-01", "0s", "x"])
      expect(() => parseUntil("--until", text, nowMs)).toThrow(/^--until is/);
    expect(() => parseSince("--since", "yesterday", nowMs)).toThrow(/^--since is/);
  });
});

describe("other words", () => {
  it("name subjects, versions and counts, or are refused", () => {
    expect(parseSubject("user=a=b")).toEqual({ dimension: "user", value: "a=b" });
    for (const word of ["user", "=u1", "user="]) expect(() => parseSubject(word)).toThrow("dimension=value");
    expect(parseVersion("--to", "3")).toBe(3);
    for (const text of ["0", "-1", "x", "1.5"]) expect(() => parseVersion("--to", text)).toThrow(/^--to is/);
    expect(parseCount("--limit", "7", 7)).toBe(7);
    expect(() => parseCount("--limit", "8", 7)).toThrow("from 1 to 7");
  });
});
