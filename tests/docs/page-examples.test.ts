import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { readSourceTree, repositoryRoot } from "../repository/source-tree.ts";

interface Example {
  readonly code: string;
  readonly line: number;
  /** The output that the page shows; undefined if it shows none. */
  readonly output: string | undefined;
}

/** Every TypeScript block of a page; a text block right after one holds its output. */
function findExamples(page: string): Example[] {
  const blocks = page.matchAll(/^```ts\n([\s\S]*?)^```$(?:\n+```text\n([\s\S]*?)^```$)?/gm);
  return [...blocks].map(({ 1: code = "", 2: output, index }) => ({
    code,
    line: page.slice(0, index).split("\n").length,
    output,
  }));
}

function run(code: string): string {
  const args = ["-C", "source", "--input-type=module-typescript", "-e", code];
  // Without an environment variable there are no colours.
  return execFileSync(process.execPath, args, { cwd: repositoryRoot, env: {}, encoding: "utf8", stdio: "pipe" });
}

describe.each([
  { page: "docs/library.md", least: 12 },
  { page: "docs/apps.md", least: 2 },
  { page: "docs/hot-keys.md", least: 1 },
])("the examples in $page", ({ page, least }) => {
  const examples = findExamples(readSourceTree().get(page) ?? "");

  it("are found", () => {
    expect(examples.length).toBeGreaterThanOrEqual(least);
  });

  for (const { code, line, output } of examples) {
    it(`run, each in its own process, and print what the page says: the one in line ${line}`, () => {
      const printed = run(code);
      if (output !== undefined) expect(printed).toBe(output);
    });
  }
});

describe("an example", () => {
  it("has the text block right after it, and no other", () => {
    const page = "x\n```ts\na();\n```\n\n```text\n1\n```\n```ts\nb();\n```\nprose\n```text\n2\n```\n";
    expect(findExamples(page)).toEqual([
      { code: "a();\n", line: 2, output: "1\n" },
      { code: "b();\n", line: 9, output: undefined },
    ]);
  });

  it("that throws is noticed", () => {
    expect(() => run("throw new Error('wrong');")).toThrow(/wrong/);
  });
});
