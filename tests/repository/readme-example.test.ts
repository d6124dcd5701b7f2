import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { findExample } from "./readme-example.ts";
import { readSourceTree, repositoryRoot } from "./source-tree.ts";

function run(code: string): string {
  const args = ["-C", "source", "--input-type=module-typescript", "-e", code];
  return execFileSync(process.execPath, args, { cwd: repositoryRoot, encoding: "utf8" });
}

describe("the example in README.md", () => {
  const readme = readSourceTree().get("README.md") ?? "";

  it("is under 20 lines", () => {
    expect(findExample(readme).code.trimEnd().split("\n").length).toBeLessThan(20);
  });

  it("prints what the page says it prints", () => {
    const { code, output } = findExample(readme);
    expect(run(code)).toBe(output);
  });

  it("is found as the first ts block and the text block after it", () => {
    const page =
      "```sh\nnpm i\n```\n```ts\nconst a: number = 1;\n```\nwhich prints\n```text\n1\n```\n```ts\nlater();\n```\n";
    expect(findExample(page)).toEqual({ code: "const a: number = 1;\n", output: "1\n" });
  });

  it("is missed when there is none", () => {
    expect(() => findExample("```ts\na();\n```\n")).toThrow(/text block/);
  });

  it("is really run", () => {
    expect(run("const greeting: string = 'hello'; process.stdout.write(greeting);")).toBe("hello");
  });
});
