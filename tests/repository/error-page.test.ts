import { errorCodes } from "sluice/internal";
import { describe, expect, it } from "vitest";
import { compareErrorPage } from "./error-page.ts";
import { readSourceTree } from "./source-tree.ts";

describe("docs/errors.md", () => {
  it("has a heading with a status for every error code, and no other", () => {
    expect(compareErrorPage(readSourceTree().get("docs/errors.md") ?? "", errorCodes)).toEqual([]);
  });

  it.each([
    ["a code without a heading", "# Errors\n", "`a` has no heading"],
    ["a code that is only mentioned", "## About `a`\n\nHTTP 400.\n", "`a` has no heading"],
    ["a heading without a code", "## `a`\n\nHTTP 400.\n\n## `b`\n\nHTTP 500.\n", "`b` has a heading and is not a code"],
    ["a code listed twice", "## `a`\n\nHTTP 400.\n\n## `a`\n\nHTTP 400.\n", "`a` has two headings"],
    ["a code without a status", "## `a`\n\nSome words.\n", "`a` has no HTTP status"],
  ])("would be caught with %s", (_what, page, problem) => {
    expect(compareErrorPage(page, ["a"])).toEqual([problem]);
  });
});
