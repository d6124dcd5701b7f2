import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const folder = fileURLToPath(new URL("..", import.meta.url));

describe.each([
  { page: "README.md", least: 1 },
  { page: "AGENTS.md", least: 1 },
  { page: "../../docs/callers.md", least: 8 },
])("the examples in $page", ({ page, least }) => {
  const text = readFileSync(new URL(`../${page}`, import.meta.url), "utf8");
  /** Every TypeScript block; a text block right after one holds its output. */
  const blocks = [...text.matchAll(/^```ts\n([\s\S]*?)^```$(?:\n+```text\n([\s\S]*?)^```$)?/gm)];

  it("are found", () => {
    expect(blocks.length).toBeGreaterThanOrEqual(least);
  });

  for (const { 1: code = "", 2: output = "", index } of blocks) {
    const line = text.slice(0, index).split("\n").length;
    it(`run separately and print the output on the page: the one in line ${line}`, () => {
      // Run inside the package, so that imports resolve; without an environment, output has no colours.
      const args = ["-C", "source", "--input-type=module-typescript", "-e", code];
      const printed = execFileSync(process.execPath, args, { cwd: folder, env: {}, encoding: "utf8", stdio: "pipe" });
      expect(printed).toBe(output);
    });
  }
});
