import { describe, expect, it } from "vitest";
import { findBrokenLinks } from "./markdown-links.ts";
import { readSourceTree } from "./source-tree.ts";

function findProblems(text: string): readonly string[] {
  return findBrokenLinks(
    new Map([
      ["docs/page.md", text],
      ["docs/other.md", "# Other things\n\n## `some_code`\n\n## Twice\n\n## Twice\n\n```sh\n# not a heading\n```\n"],
      ["src/a.ts", ""],
    ]),
  );
}

describe("relative links in Markdown", () => {
  it("all lead somewhere in this repository", () => {
    expect(findBrokenLinks(readSourceTree())).toEqual([]);
  });

  it.each([
    "[gone](gone.md)",
    "[gone](../src/b.ts)",
    "![picture](picture.svg)",
    "[gone][1]\n\n[1]: gone.md",
    '<img src="gone.png">',
    "[from the root](/src/a.ts)",
    "[heading](other.md#gone)",
    "[heading](other.md#not-a-heading)",
    "[own heading](#gone)",
  ])("are seen to be broken in %j", (text) => {
    expect(findProblems(text)).toHaveLength(1);
  });

  it.each([
    "[other](other.md)",
    "[source](../src/a.ts) and [folder](../src/)",
    "[code](other.md#some_code)",
    "[second](other.md#twice-1)",
    "# Here\n\n[own heading](#here)",
    "[the web](https://example.com/gone.md)",
    "`[code](gone.md)`",
    "```md\n[example](gone.md)\n```",
  ])("are seen to be sound in %j", (text) => {
    expect(findProblems(text)).toEqual([]);
  });
});
