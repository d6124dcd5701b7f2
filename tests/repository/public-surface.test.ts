import * as sluice from "sluice";
import { describe, expect, it } from "vitest";
import { findExports, renderSurface } from "./public-surface.ts";
import { readSourceTree } from "./source-tree.ts";

const tree = readSourceTree();

describe("the public surface", () => {
  it("is the one in public-surface.txt, which `npm run generate` rewrites", () => {
    expect(renderSurface(tree)).toBe(tree.get("tests/repository/public-surface.txt"));
  });

  it("has, as values, what importing the package gives", () => {
    const values = findExports(tree, "packages/core/src/index.ts").filter((line) => line.startsWith("value "));
    expect(values).toEqual(
      Object.keys(sluice)
        .map((name) => `value ${name}`)
        .sort(),
    );
  });

  it("is read from every way of exporting", () => {
    const example = new Map([
      [
        "src/index.ts",
        'export * from "./more.ts"; export { a as b, type C } from "./a.ts"; export type { D } from "./a.ts"; ' +
          'export const e = 1; export function f(): void {} export interface G {} export class H {} export * as i from "./a.ts";',
      ],
      ["src/more.ts", 'export type J = 1; export const k = 1, l = 2; export type * from "./types.ts";'],
      ["src/types.ts", "export class M {}"],
    ]);
    expect(findExports(example, "src/index.ts")).toEqual([
      "type C",
      "type D",
      "type G",
      "type J",
      "type M",
      "value H",
      "value b",
      "value e",
      "value f",
      "value i",
      "value k",
      "value l",
    ]);
  });
});
