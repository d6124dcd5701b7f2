import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileTextPattern } from "./text-pattern.ts";

/** The same by trying everything. */
function fitsSlowly(pattern: string, text: string): boolean {
  if (pattern === "") return text === "";
  if (pattern[0] !== "*") return text !== "" && text[0] === pattern[0] && fitsSlowly(pattern.slice(1), text.slice(1));
  return fitsSlowly(pattern.slice(1), text) || (text !== "" && fitsSlowly(pattern, text.slice(1)));
}

describe("patterns with stars", () => {
  it.each([
    ["*", "", true],
    ["*", "anything", true],
    ["/api/*", "/api/", true],
    ["/api/*", "/ap", false],
    ["*/items", "/v1/items", true],
    ["/v*/items/*", "/v1/items/7", true],
    ["/v*/items/*", "/v1/item/7", false],
    ["a*a", "a", false],
    ["ab*ba", "aba", false],
    ["a**b", "ab", true],
    ["a.c*", "abc", false],
  ])("%s fits %s: %s", (pattern, text, fits) => {
    expect(compileTextPattern(pattern)(text)).toBe(fits);
  });

  it("fit exactly what trying everything finds", () => {
    const letters = (...from: string[]) =>
      fc.array(fc.constantFrom(...from), { maxLength: 8 }).map((all) => all.join(""));
    fc.assert(
      fc.property(letters("a", "b", "*"), letters("a", "b", "*"), (pattern, text) => {
        expect(compileTextPattern(pattern)(text)).toBe(fitsSlowly(pattern, text));
      }),
      { numRuns: 2_000 },
    );
  });

  it("never go back over a text, however many stars there are", () => {
    const pattern = compileTextPattern(`${"*a".repeat(200)}*b`);
    expect(pattern("a".repeat(100_000))).toBe(false);
  });
});
