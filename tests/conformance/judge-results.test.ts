import { describe, expect, it } from "vitest";
import { type CaseResult, judgeResults } from "./judge-results.ts";

const passed: CaseResult = { id: "a/1", name: "first", outcome: "passed", detail: "" };
const failed: CaseResult = { id: "a/2", name: "second", outcome: "failed", detail: "Timeout" };
const idle: CaseResult = { id: "a/3", name: "third", outcome: "not applicable", detail: "" };

describe("results of a conformance run", () => {
  it("are fine if what fails is listed, and keep the reason", () => {
    const because = "the standard permits both";
    expect(judgeResults([passed, failed], [{ id: "a/2", because }])).toEqual({
      cases: [passed, { ...failed, because }],
      problems: [],
    });
  });

  it("report a failure, and a case that was not played, that nobody listed", () => {
    expect(judgeResults([passed, failed, idle], []).problems).toEqual([
      "a/2 (second): failed. Timeout",
      "a/3 (third): not applicable. ",
    ]);
  });

  it("accept both outcomes of a case that varies", () => {
    const exceptions = [passed, failed].map(({ id }) => ({ id, because: "x", varies: true as const }));
    expect(judgeResults([passed, failed], exceptions).problems).toEqual([]);
  });

  it("report a listed case that passes, and a listed case that does not exist", () => {
    const exceptions = ["a/1", "b/9"].map((id) => ({ id, because: "x" }));
    expect(judgeResults([passed], exceptions).problems).toEqual([
      "a/1 (first) passes, and is listed as an exception: take it off the list",
      "b/9 is listed as an exception, and there is no such case",
    ]);
  });
});
