import { describe, expect, it } from "vitest";
import { findLockProblems } from "./lock-file.ts";
import { readSourceTree } from "./source-tree.ts";

function findProblems(wanted: Record<string, string>, locked: Record<string, string>): readonly string[] {
  return findLockProblems(
    new Map([
      ["packages/a/package.json", JSON.stringify({ dependencies: wanted })],
      ["package-lock.json", JSON.stringify({ packages: { "packages/a": { dependencies: locked } } })],
    ]),
  );
}

describe("the lock file", () => {
  it("agrees with every package.json of this repository", () => {
    expect(findLockProblems(readSourceTree())).toEqual([]);
  });

  it("is reported if it lacks a dependency, has one too many, or has another version", () => {
    expect(findProblems({ yaml: "2.9.1" }, {})).toHaveLength(1);
    expect(findProblems({}, { yaml: "2.9.1" })).toHaveLength(1);
    expect(findProblems({ yaml: "2.9.2" }, { yaml: "2.9.1" })).toHaveLength(1);
    expect(findProblems({ yaml: "2.9.1" }, { yaml: "2.9.1" })).toEqual([]);
  });

  it("does not help with a version that is not pinned", () => {
    expect(findProblems({ yaml: "^2.9.1" }, { yaml: "^2.9.1" })).toHaveLength(1);
    expect(findProblems({ old: "npm:yaml@^1.10.0" }, { old: "npm:yaml@^1.10.0" })).toHaveLength(1);
    expect(findProblems({ old: "npm:yaml@1.10.2" }, { old: "npm:yaml@1.10.2" })).toEqual([]);
  });
});
