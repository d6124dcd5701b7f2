import { describe, expect, it } from "vitest";
import { findForbiddenImports } from "./import-arrows.ts";
import { readSourceTree } from "./source-tree.ts";

const server = "packages/server/src";
const manifest = ["packages/server/package.json", '{ "dependencies": { "fastify": "5" } }'] as const;

function findProblems(file: string, text: string): readonly string[] {
  return findForbiddenImports(new Map([manifest, [file, text]]));
}

describe("import arrows", () => {
  it("hold everywhere in this repository", () => {
    expect(findForbiddenImports(readSourceTree())).toEqual([]);
  });

  it.each([
    ["a Node module in core", "packages/core/src/a.ts", 'import { readFile } from "node:fs";'],
    ["an npm package in core", "packages/core/src/a.ts", 'export { parse } from "yaml";'],
    ["a type from an npm package in core", "packages/core/src/a.ts", 'import type { Node } from "yaml";'],
    ["a type by import() in core", "packages/core/src/a.ts", 'export type A = import("yaml").Node;'],
    ["an import() in core", "packages/core/src/a.ts", 'const fs = await import("node:fs");'],
    ["another npm package in policy-text", "packages/core/src/policy-text/a.ts", 'import "fastify";'],
    ["the server in core", "packages/core/src/a.ts", 'import { serve } from "@sluice/server";'],
    ["core by its own name in core", "packages/core/src/a.ts", 'import { check } from "sluice";'],
    ["the bench in the server", "packages/server/src/a.ts", 'import "@sluice/bench";'],
    ["core's source in the server", "packages/server/src/a.ts", 'import "../../core/src/clock.ts";'],
    ["core's source in a test of the server", "packages/server/src/a.test.ts", 'import "../../core/src/clock.ts";'],
    ["core's source in a whole-system test", "tests/a.test.ts", 'import "../packages/core/src/clock.ts";'],
    ["files outside of packages in the server", "packages/server/src/a.ts", 'import "../../../scripts/start.mjs";'],
    ["an undeclared npm package in the server", "packages/server/src/a.ts", 'import "left-pad";'],
    ["the control plane in the data plane", `${server}/data-plane/a.ts`, 'import "../control-plane/b.ts";'],
    [
      "a type of the control plane in the data plane",
      `${server}/data-plane/a/b.ts`,
      'import type { C } from "../../control-plane/c.ts";',
    ],
    ["compat in the control plane", `${server}/control-plane/a.ts`, 'import "../compat/b.ts";'],
    ["the data plane in observe", `${server}/observe/a.ts`, 'import "../data-plane/b.ts";'],
    ["boot in compat", `${server}/compat/a.ts`, 'import "../boot/b.ts";'],
    ["a folder in a file that every folder may import", `${server}/protocol.ts`, 'import "./observe/b.ts";'],
    ["anything in a folder without a row", `${server}/new/a.ts`, 'import "../observe/b.ts";'],
    ["the server in the client", "packages/client/src/a.ts", 'import "@sluice/server";'],
    ["the client in what paces calls", "packages/pace/src/a.ts", 'import "@sluice/client";'],
    ["the server in the command line", "packages/cli/src/commands/a.ts", 'await import("@sluice/server/command");'],
    [
      "a type of the server in the command line",
      "packages/cli/src/load-server.ts",
      'import type { A } from "@sluice/server";',
    ],
    ["the database in the command line", "packages/cli/src/a.ts", 'import "@sluice/sql";'],
    ["a command in what it is written with", "packages/cli/src/terminal/a.ts", 'import "../commands/b.ts";'],
    ["the command line in the server", "packages/server/src/a.ts", 'import "@sluice/cli";'],
    ["the shell in a view of the console", "packages/console/src/views/a.tsx", 'import "../app/b.tsx"; <a />;'],
    ["the server in the console", "packages/console/src/ui/a.tsx", 'import "@sluice/server"; <a />;'],
  ])("forbid %s", (_what, file, text) => {
    expect(findProblems(file, text)).toHaveLength(1);
  });

  it.each([
    ["yaml in policy-text", "packages/core/src/policy-text/a.ts", 'import { parse } from "yaml";'],
    ["a neighbour in the same package", "packages/core/src/match/a.ts", 'import "../clock.ts";'],
    ["core in the server", "packages/server/src/a.ts", 'import "sluice/policy-text";'],
    ["a declared npm package in the server", "packages/server/src/a.ts", 'import "fastify";'],
    ["the data plane in the control plane", `${server}/control-plane/a.ts`, 'import "../data-plane/b.ts";'],
    ["both planes in compat", `${server}/compat/a.ts`, 'import "../control-plane/b.ts"; import "../data-plane/c.ts";'],
    ["a file next to the folders in each", `${server}/observe/a/b.ts`, 'import "../../protocol.ts";'],
    ["every folder in an entry", `${server}/index.ts`, 'import "./boot/daemon.ts";'],
    ["boot in a test of the data plane", `${server}/data-plane/a.test.ts`, 'import "../boot/b.ts";'],
    ["vitest in a test of core", "packages/core/src/a.test.ts", 'import { it } from "vitest";'],
    ["loading the server in one file", "packages/cli/src/load-server.ts", 'await import("@sluice/server/command");'],
    ["a view in the console's shell", "packages/console/src/app/a.tsx", 'import "../views/b.tsx"; <a />;'],
    ["core in the bench", "bench/a.ts", 'import "sluice";'],
    ["the server in the bench", "bench/a.ts", 'import "@sluice/server";'],
  ])("allow %s", (_what, file, text) => {
    expect(findProblems(file, text)).toEqual([]);
  });

  it("require a row for every package", () => {
    expect(findProblems("packages/new/package.json", "{}")).toHaveLength(1);
  });
});
