import * as sluice from "sluice";
import { describe, expect, it } from "vitest";
import { findExports, internalEntries, renderSurface } from "./public-surface.ts";
import { readSourceTree } from "./source-tree.ts";

const tree = readSourceTree();

describe("the public surface", () => {
  it("is the one in public-surface.txt, which `npm run generate` rewrites", () => {
    expect(renderSurface(tree)).toBe(tree.get("tests/repository/public-surface.txt"));
  });

  it("lists as values what importing the package returns", () => {
    const values = findExports(tree, "packages/core/src/index.ts").filter((line) => line.startsWith("value "));
    expect(values).toEqual(
      Object.keys(sluice)
        .map((name) => `value ${name}`)
        .sort(),
    );
  });

  it("offers applications at most 50 names at the root of sluice", () => {
    expect(findExports(tree, "packages/core/src/index.ts").length).toBeLessThanOrEqual(50);
  });

  it("has in sluice/internal only names that a sibling package imports, and that no other entry has", () => {
    const imported = new Set(
      [...tree]
        .filter(([file]) => /^(packages|tests|bench)\/.*\.ts$/.test(file))
        .flatMap(([, text]) => [...text.matchAll(/import (?:type )?\{([^}]*)\} from "sluice\/internal"/g)])
        .flatMap(([, names = ""]) => names.split(","))
        .map((name) =>
          name
            .trim()
            .replace(/^type /, "")
            .replace(/ as .*/, ""),
        ),
    );
    const names = (file: string) => findExports(tree, file).map((line) => line.replace(/^(value|type) /, ""));
    const internal = names("packages/core/src/internal.ts");
    expect(internal.filter((name) => !imported.has(name))).toEqual([]);
    const promised = ["index.ts", "store.ts", "shape/index.ts"].flatMap((file) => names(`packages/core/src/${file}`));
    expect(internal.filter((name) => promised.includes(name))).toEqual([]);
    for (const entry of internalEntries) expect(renderSurface(tree)).not.toContain(entry);
  });

  it("covers every way of exporting", () => {
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
