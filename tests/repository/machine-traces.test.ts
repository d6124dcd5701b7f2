import { execFileSync } from "node:child_process";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { findMachineTraces, registryTrace } from "./machine-traces.ts";
import { readSourceTree, repositoryRoot } from "./source-tree.ts";

describe("traces of a machine", () => {
  it("are nowhere in this repository", () => {
    const registry = execFileSync("npm", ["config", "get", "registry"], {
      cwd: repositoryRoot,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    const clone = path.resolve(repositoryRoot);
    // The path of a clone directly under the root is too short to distinguish from an endpoint.
    const own = [registryTrace(registry.trim()), ...(clone.lastIndexOf("/") > 0 ? [clone] : [])];
    expect(findMachineTraces(readSourceTree(), own)).toEqual([]);
  });

  it.each([
    ["a home", ["", "home", "ann", "project"].join("/")],
    ["root's home", ["", "root", ".cache"].join("/")],
    ["a working folder", ["", "work", "project"].join("/")],
    ["a home on a Mac", ["", "Users", "ann"].join("/")],
    ["a home on Windows", ["C:", "Users", "ann"].join("\\")],
    ["the registry in use", "registry=https://npm.example.test:4873/"],
  ])("are seen in %s", (_what, text) => {
    const tree = new Map([["docs/page.md", `See ${text} for more.`]]);
    expect(findMachineTraces(tree, [registryTrace("https://npm.example.test:4873/")])).toHaveLength(1);
  });

  it("are not seen in an endpoint or a relative path", () => {
    const text = "GET /v1/users/home and https://example.com/home/page and src/work/unit and /users/1";
    expect(findMachineTraces(new Map([["docs/page.md", text]]), [])).toEqual([]);
  });

  it("are not looked for in the lock file, which npm writes", () => {
    const text = '"resolved": "https://npm.example.test/a.tgz"';
    expect(findMachineTraces(new Map([["package-lock.json", text]]), ["//npm.example.test"])).toEqual([]);
  });
});
