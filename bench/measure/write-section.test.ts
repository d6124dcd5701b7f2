import { expect, it } from "vitest";
import { renderCount, renderTable, replaceSection } from "./write-section.ts";

const page = [
  "# Page",
  "<!-- written by npm run bench -- one --write -->",
  "old",
  "<!-- end of one -->",
  "between",
  "<!-- written by npm run bench -- other --write -->",
  "<!-- end of other -->",
  "",
].join("\n");

it("replaces a suite's section, and nothing else", () => {
  const after = replaceSection(page, "one", "new\n");
  expect(after).toBe(page.replace("old", "\nnew\n"));
  expect(replaceSection(after, "one", "new")).toBe(after);
});

it("refuses a suite that has no section", () => {
  expect(() => replaceSection(page, "third", "text")).toThrow('no section for "third"');
});

it("aligns columns of numbers at the right", () => {
  expect(renderTable(["server", "per second", "note"], [["a", "1 200", "x"]])).toBe(
    "| server | per second | note |\n|---|--:|---|\n| a | 1 200 | x |",
  );
});

it("writes large numbers in groups of three digits", () => {
  expect([7, 1_000, 1_234_567].map(renderCount)).toEqual(["7", "1 000", "1 234 567"]);
});
