import { describe, expect, it } from "vitest";
import { findFolderCycles } from "./folder-cycles.ts";
import { readSourceTree } from "./source-tree.ts";

function findProblems(...files: readonly (readonly [file: string, text: string])[]): readonly string[] {
  return findFolderCycles(new Map(files));
}

describe("folders", () => {
  it("do not need each other, in any package", () => {
    expect(findFolderCycles(readSourceTree())).toEqual([]);
  });

  it.each([
    ["two folders", "packages/core/src/a/x.ts", "packages/core/src/b/y.ts"],
    ["a folder and a file next to it", "packages/core/src/a/x.ts", "packages/core/src/y.ts"],
    ["folders within a folder", "packages/server/src/deep/a/x.ts", "packages/server/src/deep/b/c/y.ts"],
  ])("may not need each other: %s", (_what, one, other) => {
    const to = (from: string, target: string): string =>
      `import type { T } from "${"../".repeat(from.split("/").length - 1)}${target}";`;
    expect(findProblems([one, to(one, other)], [other, to(other, one)])).toHaveLength(1);
  });

  it("may not form a longer circle", () => {
    const problems = findProblems(
      ["packages/core/src/a/x.ts", 'import "../b/x.ts";'],
      ["packages/core/src/b/x.ts", 'import "../c/x.ts";'],
      ["packages/core/src/c/x.ts", 'import "../a/y.ts";'],
      ["packages/core/src/a/y.ts", ""],
    );
    expect(problems).toEqual(["packages/core/src: a, b, c need each other"]);
  });

  it("may be used one by the other, and by tests both ways", () => {
    const problems = findProblems(
      ["packages/core/src/a/x.ts", 'import "../b/x.ts";'],
      ["packages/core/src/b/x.test.ts", 'import "../a/x.ts";'],
      ["packages/core/src/b/testing/x.ts", 'import "../../a/x.ts";'],
      ["packages/core/src/routes.ts", 'import "./a/x.ts";'],
      ["packages/core/src/a/z.ts", 'import "../route.ts";'],
    );
    expect(problems).toEqual([]);
  });
});
