import { describe, expect, it } from "vitest";
import { findMapErrors } from "./code-map.ts";
import { readSourceTree } from "./source-tree.ts";

function findProblems(map: string, ...files: readonly string[]): readonly string[] {
  return findMapErrors(new Map([["ARCHITECTURE.md", map], ...files.map((file) => [file, ""] as const)]));
}

const section = "## Code map: `packages/core/src` (`sluice`)\n\n";

describe("the map in ARCHITECTURE.md", () => {
  it("shows every folder, and nothing that is gone", () => {
    expect(findMapErrors(readSourceTree())).toEqual([]);
  });

  it("may not leave a folder out, down to the second level", () => {
    const files = ["packages/core/src/match/a.ts", "packages/core/src/match/deep/b.ts"];
    expect(findProblems(section, ...files)).toEqual([
      "ARCHITECTURE.md does not show packages/core/src/match",
      "ARCHITECTURE.md does not show packages/core/src/match/deep",
    ]);
    expect(findProblems(`${section}| \`match/deep/\` | limits |`, ...files)).toEqual([]);
  });

  it("may not show a folder of one package for that of another", () => {
    const redis = "## Code map: `packages/redis/src`\n\n| `match/` | servers |\n";
    expect(findProblems(section + redis, "packages/core/src/match/a.ts")).toHaveLength(1);
  });

  it("may not show a file that is gone", () => {
    const file = "packages/core/src/match-limits.ts";
    expect(findProblems(`${section}\`match-limits\` and \`match-limits.ts\``, file)).toEqual([]);
    expect(findProblems(`${section}\`find-limits\``, file)).toEqual([
      "ARCHITECTURE.md shows find-limits, which is gone",
    ]);
  });

  it("need not show tests, nor what they share", () => {
    expect(findProblems(section, "packages/core/src/x/a.test.ts", "packages/core/src/testing/a.ts")).toEqual([]);
  });
});
