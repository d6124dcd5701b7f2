import { describe, expect, it } from "vitest";
import { findClockReads, findEnvironmentReads } from "./ambient-access.ts";
import { readSourceTree } from "./source-tree.ts";

describe("the machine's clock", () => {
  it("is read in core only by clock.ts", () => {
    expect(findClockReads(readSourceTree())).toEqual([]);
  });

  it.each([
    "const t = Date.now();",
    "const t = new Date();",
    "const t = Date();",
    "const read = Date.now;",
    "const { now } = Date;",
    "const t = performance.now();",
    "const t = process.hrtime.bigint();",
    "const t = globalThis.performance.now();",
    "const t = globalThis.Date.now();",
    'import { performance } from "node:perf_hooks";',
    "const clocks = { performance };",
  ])("is detected in %s", (text) => {
    expect(findClockReads(new Map([["packages/core/src/a.ts", text]]))).not.toEqual([]);
  });

  it.each([
    "const text = new Date(ms).toISOString();",
    "const ms = Date.parse(text);",
    "const ms = Date.UTC(2026, 0, 1);",
    "const known = value instanceof Date;",
    "export function format(moment: Date): string { return moment.toISOString(); }",
    "const figures = { performance: 1 };",
    "const fast = figures.performance;",
    "// Date.now() is for clock.ts",
  ])("is not read by %s", (text) => {
    expect(findClockReads(new Map([["packages/core/src/a.ts", text]]))).toEqual([]);
  });

  it("may be read by tests, by clock.ts and outside of core", () => {
    const text = "const t = Date.now();";
    const files = ["packages/core/src/a.test.ts", "packages/core/src/clock.ts", "packages/server/src/a.ts"];
    expect(findClockReads(new Map(files.map((file) => [file, text])))).toEqual([]);
  });
});

describe("the environment", () => {
  it("is read by the server's main.ts alone", () => {
    expect(findEnvironmentReads(readSourceTree())).toEqual([]);
  });

  it.each([
    "const port = process.env.PORT;",
    'const port = process["env"].PORT;',
    "const port = globalThis.process.env.PORT;",
    "const { env } = process;",
    'import { env } from "node:process";',
  ])("is detected in %s", (text) => {
    expect(findEnvironmentReads(new Map([["packages/server/src/settings.ts", text]]))).toHaveLength(1);
  });

  it("is not read by code that receives it", () => {
    const text = "export const parse = (env: Record<string, string>): string | undefined => env.PORT;";
    expect(findEnvironmentReads(new Map([["packages/server/src/settings.ts", text]]))).toEqual([]);
  });

  it("may be read by main.ts and by tests", () => {
    const text = "const port = process.env.PORT;";
    const files = ["packages/cli/src/main.ts", "packages/server/src/a.test.ts"];
    expect(findEnvironmentReads(new Map(files.map((file) => [file, text])))).toEqual([]);
  });
});
