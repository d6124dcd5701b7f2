import { describe, expect, it } from "vitest";
import { renderPolicyProblem } from "./render-policy-problem.ts";

describe("a problem with policies", () => {
  it.each([
    [
      { path: ["policies", 0, "id"], message: "is missing", place: { file: "p.yaml", line: 4, column: 7 } },
      "p.yaml:4:7 policies[0].id: is missing",
    ],
    [{ path: [], message: "does not exist", place: { file: "p.yaml", line: 1, column: 1 } }, "p.yaml does not exist"],
    [{ path: [], message: "is no YAML", place: { file: "p.yaml", line: 3, column: 2 } }, "p.yaml:3:2 is no YAML"],
    [{ path: [], message: "cannot be applied" }, "cannot be applied"],
  ])("reads as one would write it: %j", (problem, text) => {
    expect(renderPolicyProblem(problem)).toBe(text);
  });
});
