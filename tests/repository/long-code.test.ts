import { describe, expect, it } from "vitest";
import { findLongCode, longest } from "./long-code.ts";
import { readSourceTree } from "./source-tree.ts";

const file = "packages/core/src/a.ts";

function findProblems(text: string, name = file): readonly string[] {
  return findLongCode(new Map([[name, text]]));
}

/** A function of so many lines. */
function declare(lines: number, head = "function long(): void {"): string {
  return `${head}\n${"  go();\n".repeat(lines - 2)}}\n`;
}

describe("code", () => {
  it("is in files and functions that can be read at once, or says why not", () => {
    expect(findLongCode(readSourceTree())).toEqual([]);
  });

  it.each([
    ["function", "function long(): void {", "", "1 long"],
    ["arrow function", "const long = () => {", "", "1 long"],
    ["method", "class A {\n  long(): void {", "}", "2 long"],
    ["nameless function", "(function (): void {", ")", "1 a function"],
  ])("may not have a %s of more lines", (_what, head, tail, name) => {
    expect(findProblems(declare(longest.function, head) + tail)).toEqual([]);
    expect(findProblems(declare(longest.function + 1, head) + tail)).toEqual([
      `${file}:${name} has ${longest.function + 1} lines: at most ${longest.function}`,
    ]);
  });

  it("may have components with more markup", () => {
    expect(findProblems(declare(longest.component), "packages/console/src/a.tsx")).toEqual([]);
    expect(findProblems(declare(longest.component + 1), "packages/console/src/a.tsx")).toHaveLength(1);
  });

  it("may not be in a file of more lines, without the line end of its last", () => {
    expect(findProblems("go();\n".repeat(longest.file))).toEqual([]);
    expect(findProblems("go();\n".repeat(longest.file + 1))).toEqual([
      `${file} has ${longest.file + 1} lines: at most ${longest.file}`,
    ]);
  });

  it("may be longer if its first comment says why, is a test, or is generated", () => {
    const long = declare(longest.file + 1);
    expect(findProblems(long)).toHaveLength(2);
    expect(findProblems(`// Long because it is one table.\n${long}`)).toEqual([]);
    expect(findProblems(`/** Long because it is one table. */\n${long}`)).toEqual([]);
    expect(findProblems(`// It is long.\n${long}`)).toHaveLength(2);
    for (const name of ["a.test.ts", "scripts.generated.ts", "generated/a.ts"])
      expect(findProblems(long, `packages/core/src/${name}`)).toEqual([]);
    expect(findProblems(long, "scripts/a.ts")).toEqual([]);
  });
});
