import { describe, expect, it } from "vitest";
import { findImportCycles } from "./import-cycles.ts";
import { readSourceTree } from "./source-tree.ts";

describe("import cycles", () => {
  it("are nowhere in this repository", () => {
    expect(findImportCycles(readSourceTree())).toEqual([]);
  });

  it("are reported as the files along the way", () => {
    const tree = new Map([
      ["src/main.ts", 'import "./a.ts";'],
      ["src/a.ts", 'import "./deep/b.ts";'],
      ["src/deep/b.ts", 'export { c } from "../c.ts";'],
      ["src/c.ts", 'import "./a.ts"; export const c = 1;'],
    ]);
    expect(findImportCycles(tree)).toEqual(["src/a.ts → src/deep/b.ts → src/c.ts → src/a.ts"]);
  });

  it("are found in types alone", () => {
    const tree = new Map([
      ["a.ts", 'import type { B } from "./b.ts"; export interface A { b: B }'],
      ["b.ts", 'export interface B { a: import("./a.ts").A }'],
    ]);
    expect(findImportCycles(tree)).toEqual(["a.ts → b.ts → a.ts"]);
  });

  it("do not include two paths to the same file", () => {
    const tree = new Map([
      ["a.ts", 'import "./b.ts"; import "./c.ts";'],
      ["b.ts", 'import "./c.ts";'],
      ["c.ts", ""],
    ]);
    expect(findImportCycles(tree)).toEqual([]);
  });
});
