import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { renderManifest } from "../../scripts/pack-packages.mjs";
import { admits } from "./find-nodes.ts";
import { findFileProblems, findSpecifiers } from "./published-files.ts";

const good: Readonly<Record<string, string>> = {
  "package.json": JSON.stringify({
    exports: {
      ".": {
        require: { types: "./dist/cjs/index.d.cts", default: "./dist/cjs/index.cjs" },
        default: { types: "./dist/index.d.ts", default: "./dist/index.js" },
      },
      "./package.json": "./package.json",
    },
    bin: { it: "./dist/main.js" },
  }),
  "README.md": "# It\n",
  LICENSE: "Yes.\n",
  "dist/index.js": 'export { a } from "./a.js";\n',
  "dist/index.d.ts": 'export { a } from "./a.ts";\nexport type { T } from "./t.ts";\n',
  "dist/index.js.map": JSON.stringify({ sources: ["../src/index.ts"] }),
  "dist/a.js": `new Worker(new URL(\`b.\${extension}\`, import.meta.url));\nexport const a = 1;\n`,
  "dist/a.d.ts": "export declare const a = 1;\n",
  "dist/b.js": "export {};\n",
  "dist/t.js": "export {};\n",
  "dist/t.d.ts": "export type T = 1;\n",
  "dist/cjs/index.cjs": 'const a = require("./chunks/a.cjs");\n',
  "dist/cjs/index.d.cts": 'export { a } from "./a.cjs";\n',
  "dist/cjs/a.d.cts": "export declare const a = 1;\n",
  "dist/cjs/chunks/a.cjs": "exports.a = 1;\n",
  "dist/main.js": 'await import("./index.js");\n',
  "src/index.ts": 'export { a } from "./a.ts";\n',
  "src/scripts/take.lua": "return 1\n",
};

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-files-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The problems of the good package with some files changed; those that are undefined are missing. */
function problemsWith(changed: Readonly<Record<string, string | undefined>>): readonly string[] {
  for (const [file, text] of Object.entries({ ...good, ...changed })) {
    if (text === undefined) continue;
    mkdirSync(path.join(folder, path.dirname(file)), { recursive: true });
    writeFileSync(path.join(folder, file), text);
  }
  return findFileProblems(folder);
}

describe("the files of a package", () => {
  it("are right when everything leads somewhere, and to everything", () => {
    expect(problemsWith({})).toEqual([]);
  });

  it.each([
    ["no page", { "README.md": undefined }, "there is no README.md"],
    ["a test", { "src/a.test.ts": "it();\n" }, "src/a.test.ts is of no use to users"],
    ["a build's cache", { "dist/a.tsbuildinfo": "{}" }, "dist/a.tsbuildinfo is of no use to users"],
    [
      "a map without its source",
      { "src/index.ts": undefined },
      "dist/index.js.map leads to ../src/index.ts, which is not there",
    ],
    ["a source that is not built", { "src/c.ts": "export {};\n" }, "src/c.ts is the source of nothing"],
    ["an unused module", { "dist/gone.js": "export {};\n" }, "nothing leads to dist/gone"],
    [
      "an entry that is not there",
      { "dist/main.js": undefined },
      "package.json leads to dist/main.js, which is not there",
    ],
    ["a module that is not there", { "dist/a.js": undefined }, "dist/index.js leads to dist/a.js, which is not there"],
    [
      "a chunk that is not there",
      { "dist/cjs/chunks/a.cjs": undefined },
      "dist/cjs/index.cjs leads to dist/cjs/chunks/a.cjs, which is not there",
    ],
    [
      "types for CommonJS that are not there",
      { "dist/cjs/a.d.cts": undefined },
      "dist/cjs/index.d.cts leads to dist/cjs/a.d.cts, which is not there",
    ],
    ["an unused chunk", { "dist/cjs/chunks/gone.cjs": "exports.b = 1;\n" }, "nothing leads to dist/cjs/chunks/gone"],
    [
      "types that are not there",
      { "dist/t.d.ts": undefined },
      "dist/index.d.ts leads to dist/t.d.ts, which is not there",
    ],
  ])("are wrong with %s", (_what, changed, problem) => {
    expect(problemsWith(changed)).toContain(problem);
  });
});

describe("the manifest", () => {
  const manifest = {
    name: "@sluice/a",
    version: "1.0.0",
    scripts: { prepack: "exit 1" },
    exports: { ".": { source: "./src/index.ts", default: "./dist/index.js" }, "./b": { default: "./dist/b.js" } },
    dependencies: { sluice: "0.1.0", yaml: "2.9.1" },
    devDependencies: { vitest: "5.1.0" },
  };

  it("is published without development settings, and accepts compatible versions of our own packages", () => {
    expect(renderManifest(manifest, ["@sluice/a", "sluice"])).toEqual({
      name: "@sluice/a",
      version: "1.0.0",
      exports: { ".": { default: "./dist/index.js" }, "./b": { default: "./dist/b.js" } },
      dependencies: { sluice: "^0.1.0", yaml: "2.9.1" },
    });
  });

  it("names what can be imported", () => {
    expect(
      findSpecifiers({ ...manifest, exports: { ...manifest.exports, "./package.json": "./package.json" } }),
    ).toEqual(["@sluice/a", "@sluice/a/b"]);
    expect(() => findSpecifiers({ ...manifest, exports: { "./*": "./dist/*.js" } })).toThrow(/not a plain subpath/);
  });

  it.each([
    [">=20", "20.0.0", true],
    [">=20", "18.20.1", false],
    [">=22.18", "22.17.9", false],
    [">=22.18", "22.18.0", true],
    [">=22.18", "24.0.0", true],
  ])("with engines %s admits Node %s: %s", (engines, version, admitted) => {
    expect(admits(engines, version)).toBe(admitted);
  });

  it("with other engines is not understood", () => {
    expect(() => admits("^20 || ^22", "20.0.0")).toThrow(/not of the form/);
  });
});
