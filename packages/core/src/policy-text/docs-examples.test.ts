import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { renderProblem, SluiceError } from "../errors.ts";
import { parsePolicyText } from "./parse-policy-text.ts";

interface Example {
  readonly text: string;
  readonly line: number;
  /** The lint warnings that the page mentions; undefined if there are none. */
  readonly warnings: string | undefined;
}

/** Every YAML or JSON block of a page; a text block right after one holds its warnings. */
function findExamples(page: string): Example[] {
  const blocks = page.matchAll(/^```(?:yaml|json)\n([\s\S]*?)^```$(?:\n+```text\n([\s\S]*?)^```$)?/gm);
  return [...blocks].map(({ 1: text = "", 2: warnings, index }) => ({
    text,
    line: page.slice(0, index).split("\n").length,
    warnings,
  }));
}

function readPage(name: string): string {
  return readFileSync(new URL(`../../../../${name}`, import.meta.url), "utf8");
}

describe("the examples in docs/policies.md", () => {
  const examples = findExamples(readPage("docs/policies.md"));

  it("are found", () => {
    expect(examples.length).toBeGreaterThan(12);
    expect(examples.filter(({ warnings }) => warnings !== undefined)).toHaveLength(1);
  });

  for (const { text, line, warnings } of examples) {
    it(`parse, with the warnings that the page mentions: the one in line ${line}`, () => {
      const parsed = parsePolicyText(text, { file: "policies.yaml" });
      // The domains format has no way to choose what the warning is about.
      if (parsed.dialect === "domains") return;
      expect(parsed.warnings.map(renderProblem).join("\n")).toBe((warnings ?? "").trimEnd());
    });
  }
});

describe("the files in docs/envoy.md", () => {
  const examples = findExamples(readPage("docs/envoy.md")).filter(({ text }) => text.startsWith("domain:"));

  it("load as they are, without a warning", () => {
    expect(examples.length).toBeGreaterThanOrEqual(2);
    for (const { text } of examples) {
      const parsed = parsePolicyText(text);
      expect([parsed.dialect, parsed.warnings]).toEqual(["envoy", []]);
    }
  });
});

describe("YAML on the pages of the server and the command line", () => {
  it.each(["server/README.md", "server/AGENTS.md", "cli/README.md", "cli/AGENTS.md"].map((page) => `packages/${page}`))(
    "loads without a warning: %s",
    (name) => {
      const [example, ...others] = findExamples(readPage(name));
      expect(others).toEqual([]);
      expect(parsePolicyText(example!.text).warnings).toEqual([]);
    },
  );
});

describe("YAML in README.md", () => {
  it("parses, if there is any", () => {
    const page = readPage("README.md");
    for (const [, text = ""] of page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)) parsePolicyText(text);
    expect(page).toContain("# Sluice");
  });
});

describe("an example", () => {
  it("that is wrong would be noticed", () => {
    const page =
      "a\n```yaml\npolices: []\n```\n\n```text\nwarning\n```\n```yaml\npolicies: []\n```\nand\n```text\nx\n```\n";
    const [wrong, right] = findExamples(page);
    expect(wrong).toEqual({ text: "polices: []\n", line: 2, warnings: "warning\n" });
    expect(right).toMatchObject({ text: "policies: []\n", warnings: undefined });
    expect(() => parsePolicyText(wrong!.text)).toThrow(SluiceError);
  });
});
