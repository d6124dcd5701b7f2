import { parsePolicies } from "sluice";
import { describe, expect, it } from "vitest";
import { simulate } from "../replay/simulation.ts";
import type { SimulationReport } from "../replay/simulation-report.ts";
import { judge, parseFailIf } from "./fail-if.ts";
import { renderHtml } from "./render-html.ts";
import { renderCount, renderShare } from "./render-quantity.ts";

const startMs = Date.UTC(2026, 0, 31, 12);

function createReport(wholeSecond = false): SimulationReport {
  const candidate = parsePolicies({
    policies: [
      {
        id: "api",
        limits: [
          { by: ["ip"], windows: ["2/m"] },
          { by: [], windows: ["600/m"] },
          { by: ["tenant"], windows: ["1/m"] },
        ],
        on_failure: "open",
      },
    ],
  });
  const requests = Array.from({ length: 10 }, (_, i) => ({
    timeMs: startMs + (wholeSecond ? 0 : i * 100),
    wholeSecond,
    dimensions: { ip: i === 9 ? "192.0.2.1" : "203.0.113.7", endpoint: "/", method: "<script>" },
  }));
  return simulate(requests, { candidate, carried: ["ip", "endpoint", "method"], findLimit: { policy: "api" } });
}

describe("a condition to fail by", () => {
  it.each([
    ["denied > 0.1%", true, 70],
    ["denied > 70%", false, 70],
    ["denied >= 70 %", true, 70],
    ["denied>6", true, 7],
    ["newly-denied > 50%", true, 70],
    ["newly-denied >= 8", false, 7],
    ["subjects-hurt > 0", true, 1],
    ["subjects-hurt > 1", false, 1],
  ])("%s: %s", (text, failed, value) => {
    expect(judge(parseFailIf(text), createReport())).toEqual({ condition: text, failed, value });
  });

  it("compares the most of a range", () => {
    const report = {
      ...createReport(),
      candidate: { ...createReport().candidate, range: { least_denied: 7, most_denied: 9 } },
    };
    expect(judge(parseFailIf("denied > 8"), report)).toMatchObject({ failed: true, value: 9 });
    expect(judge(parseFailIf("newly-denied > 8"), report)).toMatchObject({ failed: true, value: 9 });
  });

  it.each(["denied", "denied < 1%", "errors > 1", "denied > x", "subjects-hurt > 1%"])("%j is refused", (text) => {
    expect(() => parseFailIf(text)).toThrow(RangeError);
  });
});

describe("the HTML page", () => {
  const html = renderHtml(createReport(true), { title: "<b>x</b> & y", notes: ["2 lines <i>could not</i> be read"] });

  it("contains every part", () => {
    for (const part of [
      "Flips",
      "Policies",
      "Over time",
      "Subjects newly hurt",
      "Sizes of api",
      "Peaks",
      "Left out",
      "Notes",
    ])
      expect(html).toContain(`<h2>${part}`);
    expect(html).toContain("203.0.113.7");
    expect(html).toContain("api: 600/m");
    expect(html).toContain("limit tenant of policy api is by tenant, and was left out");
    expect(html).toContain("prefers-color-scheme: dark");
    expect(html.match(/<svg/g)?.length).toBeGreaterThanOrEqual(4);
    expect(html).not.toContain("NaN");
  });

  it("needs no other host, and lets nothing from a log be markup", () => {
    expect(html).not.toMatch(/https?:|src=|url\(|@import|<script|<link|<b>|<i>/);
    expect(html).toContain("&#60;b&#62;x");
  });

  it("is a page also for no requests", () => {
    const empty = simulate([], { candidate: parsePolicies({ policies: [] }), carried: [] });
    expect(renderHtml(empty, { title: "x", notes: [] })).toContain("0 requests");
  });
});

it("renders quantities so that little is never nothing", () => {
  expect(renderCount(1_234_567)).toBe("1 234 567");
  expect(renderCount(0.25)).toBe("0.25");
  expect(renderShare(1, 1_000_000_000)).toBe("<0.001 %");
  expect(renderShare(999_999, 1_000_000)).toBe(">99.9 %");
  expect(renderShare(1, 3)).toBe("33.3 %");
  expect(renderShare(1, 700)).toBe("0.14 %");
});
