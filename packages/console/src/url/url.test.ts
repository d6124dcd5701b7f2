import { describe, expect, it } from "vitest";
import { numberParam, oneOf, safeReturnPath, textParam, withoutDefaults } from "./search-params.ts";
import { boundsBefore, boundsOf, isTimeRange, timeRanges } from "./time-range.ts";

describe("the address of a view", () => {
  it("falls back to the default for what it cannot mean", () => {
    expect(oneOf("yaml", ["usage", "yaml"], "usage")).toBe("yaml");
    expect(oneOf({ a: 1 }, ["usage", "yaml"], "usage")).toBe("usage");
    expect([
      textParam("x"),
      textParam(42),
      textParam(""),
      textParam(["x"]),
      textParam("x".repeat(300))?.length,
    ]).toEqual(["x", "42", undefined, undefined, 256]);
    expect([numberParam("3", 1, 9), numberParam(3, 1, 9), numberParam("3.5", 1, 9), numberParam(10, 1, 9)]).toEqual([
      3,
      3,
      undefined,
      undefined,
    ]);
    expect([isTimeRange("5m"), isTimeRange("toString"), isTimeRange(5)]).toEqual([true, false, false]);
  });

  it("does not name what is the default", () => {
    expect(withoutDefaults({ range: "1h", q: undefined, sort: "id" }, { range: "1h" })).toEqual({ sort: "id" });
  });

  it.each(["/policies?q=a", "/subjects/tenant/acme", "/"])("may be returned to after signing in: %s", (path) => {
    expect(safeReturnPath(path)).toBe(path);
  });

  it.each([
    "//evil.example",
    "/\\evil.example",
    "https://evil.example",
    "javascript:alert(1)",
    "/a\\b",
    "/\t/evil.example",
    "policies",
    "/sign-in?to=/sign-in",
    "/api/v1/policies",
    undefined,
    7,
  ])("is not returned to if it leads elsewhere: %s", (path) => {
    expect(safeReturnPath(path)).toBe("/");
  });
});

describe("a time range", () => {
  it("ends with the period that has begun, and has whole periods", () => {
    const nowMs = Date.parse("2026-11-18T12:34:56Z");
    expect(boundsOf("5m", nowMs)).toEqual({
      fromMs: Date.parse("2026-11-18T12:30:00Z"),
      toMs: Date.parse("2026-11-18T12:35:00Z"),
    });
    expect(boundsOf("7d", nowMs).toMs).toBe(Date.parse("2026-11-18T13:00:00Z"));
    expect(boundsBefore("5m", nowMs)).toEqual({
      fromMs: Date.parse("2026-11-18T12:25:00Z"),
      toMs: Date.parse("2026-11-18T12:30:00Z"),
    });
  });

  it("has at most 1,500 periods, which a chart can show", () => {
    for (const { ms, step } of Object.values(timeRanges)) {
      expect(ms / { minute: 60_000, hour: 3_600_000 }[step]).toBeLessThanOrEqual(1_500);
    }
  });
});
