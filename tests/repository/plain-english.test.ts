import { describe, expect, it } from "vitest";
import { dialect, findOddEnglish, longestLine } from "./plain-english.ts";
import { readSourceTree } from "./source-tree.ts";

function findProblems(text: string): readonly string[] {
  return findOddEnglish(new Map([["docs/page.md", text]]));
}

describe("what people read", () => {
  it("is in plain English, in lines that fit", () => {
    expect(findOddEnglish(readSourceTree())).toEqual([]);
  });

  it("may be none of this", () => {
    const examples = [
      "Nobody can read it.",
      "Whoever asks is answered.",
      "This page is for who calls an API.",
      "Who would rather edit a file: this does.",
      "It is 25 ms where nothing is said.",
      "It lists them, also where none are.",
      "The log tells of it.",
      "The caller waits in vain.",
      "It is not there any more.",
      "Every node takes it up.",
      "It needs Node from 20 on.",
      "Say --for <while>.",
      "The counters are away.",
      "It refuses what is no address.",
      "Every node hears of it.",
    ];
    expect(examples.map((example) => findProblems(example).length)).toEqual(dialect.map(() => 1));
  });

  it("is named by file and line, with what to write", () => {
    expect(findProblems("# Page\n\nThis is for\nwho calls.\n")).toEqual([
      "docs/page.md:3 says “for who”: write “for code that …”, “for clients that …”",
    ]);
  });

  it("is not code", () => {
    expect(findProblems("Say `--for <while>`.\n\n```text\nnobody can\n```\n")).toEqual([]);
    expect(findProblems(`\`\`\`\n${"x".repeat(longestLine + 1)}\n\`\`\`\n`)).toEqual([]);
  });

  it("has lines that fit, but for tables and link definitions", () => {
    const long = "x".repeat(longestLine);
    expect(findProblems(`# Page\n\n${long}\n`)).toEqual([]);
    expect(findProblems(`# Page\n\n${long}x\n`)).toEqual([`docs/page.md:3 has ${longestLine + 1} characters`]);
    expect(findProblems(`| ${long} |\n[page]: https://example.com/${long}\n`)).toEqual([]);
    // In characters, not in bytes or UTF-16 units.
    expect(findProblems("→".repeat(longestLine))).toEqual([]);
    expect(findProblems("😀".repeat(longestLine))).toEqual([]);
  });

  it("is the strings and comments of TypeScript, without the code in them", () => {
    const code = `// nobody
const nobody = "nobody"; // fine, as is \`nobody\`
throw new Error(\`no \${nobody}:\\nnobody answers // in vain\`);
/**
 * It is not there any
 * more.
 */
const any = /nobody/; // any
const more = "any";
`;
    expect(findOddEnglish(new Map([["packages/a/src/a.ts", code]]), ["packages/*/src/**/*.ts"]).toSorted()).toEqual([
      expect.stringMatching(/^packages\/a\/src\/a\.ts:1 says “nobody”/),
      expect.stringMatching(/^packages\/a\/src\/a\.ts:3 says “in vain”/),
      expect.stringMatching(/^packages\/a\/src\/a\.ts:3 says “nobody”/),
      expect.stringMatching(/^packages\/a\/src\/a\.ts:5 says “any more”/),
    ]);
  });

  it("is the comments of Lua", () => {
    const code = "--- Nobody asks.\nlocal nobody = 1\n-- It waits\n-- in vain.\n";
    expect(findOddEnglish(new Map([["packages/a/src/a.lua", code]]), ["packages/*/src/*.lua"])).toEqual([
      expect.stringMatching(/^packages\/a\/src\/a\.lua:1 says “Nobody”/),
      expect.stringMatching(/^packages\/a\/src\/a\.lua:4 says “in vain”/),
    ]);
  });

  it("is looked for on guarded pages alone", () => {
    expect(findOddEnglish(new Map([["docs/drafts/page.md", "nobody"]]))).toEqual([]);
    expect(findOddEnglish(new Map([["packages/core/README.md", "nobody"]]))).toHaveLength(1);
  });
});
