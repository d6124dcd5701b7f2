import type { Problem, SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import { readExpected } from "./read-expected.ts";

function findProblems(headers: Record<string, string>, inBody?: number, expects: boolean | "or_any" = true): string[] {
  try {
    readExpected(headers, inBody, expects);
    return [];
  } catch (error) {
    return (error as SluiceError).problems.map(({ path, message }: Problem) => `${path} ${message}`);
  }
}

describe("the version that a caller saw", () => {
  it("comes from If-Match, from If-None-Match, or from the body", () => {
    expect(readExpected({ "if-match": '"3"' }, undefined, true)).toBe(3);
    expect(readExpected({ "if-match": ' W/"3" ' }, undefined, true)).toBe(3);
    expect(readExpected({ "if-none-match": "*" }, undefined, true)).toBe(0);
    expect(readExpected({}, 7, true)).toBe(7);
    expect(readExpected({ "if-match": '"7"' }, 7, true)).toBe(7);
    expect(readExpected({}, undefined, true)).toBeUndefined();
  });

  it.each(["3", "*", '"3", "4"', '"three"', '"-1"', '""', '"9999999999999999"'])(
    "is not read from If-Match: %s",
    (text) => {
      expect(findProblems({ "if-match": text })).toEqual([expect.stringContaining("If-Match must be the ETag")]);
    },
  );

  it("may be *, if the route accepts that", () => {
    expect(readExpected({ "if-match": " * " }, undefined, "or_any")).toBe("any");
    expect(readExpected({ "if-match": '"3"' }, undefined, "or_any")).toBe(3);
    expect(readExpected({}, undefined, "or_any")).toBeUndefined();
    expect(findProblems({ "if-match": "3" }, undefined, "or_any")).toEqual([expect.stringContaining("or *")]);
    expect(findProblems({ "if-match": "*" }, 3, "or_any")).toEqual([expect.stringContaining("names another")]);
    expect(findProblems({ "if-match": "*", "if-none-match": "*" }, undefined, "or_any")).toHaveLength(1);
  });

  it("is one version, and is refused on routes that do not use it", () => {
    expect(findProblems({ "if-none-match": '"3"' })).toEqual([expect.stringContaining("If-None-Match must be *")]);
    expect(findProblems({ "if-match": '"3"' }, 4)).toEqual([expect.stringContaining("expected_version names another")]);
    expect(findProblems({ "if-match": '"3"', "if-none-match": "*" })).toHaveLength(1);
    expect(findProblems({ "if-match": '"3"' }, undefined, false)).toEqual(["If-Match is not used here; leave it out"]);
  });
});
