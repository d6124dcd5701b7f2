import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startServer } from "@sluice/test-servers";
import { expect, test } from "vitest";

test("the example in docs/redis.md prints what it says", async () => {
  const page = readFileSync(new URL("../../../docs/redis.md", import.meta.url), "utf8");
  const [, code = ""] = /```ts\n([^`]+)```/.exec(page) ?? [];
  const said = code.match(/^\/\/ .*$/gm)?.map((line) => line.slice(3)) ?? [];
  expect(said.length).toBeGreaterThan(0);
  const server = await startServer({ flavor: "valkey" });
  // Within the package, so that its imports are found.
  const file = fileURLToPath(new URL(`docs-example-${process.pid}.ts`, import.meta.url));
  try {
    // With all the time that a busy machine may need.
    writeFileSync(file, code.replace('"redis://127.0.0.1:6379"', `"${server.url}", { deadlineMs: 20_000 }`));
    const { stdout } = await promisify(execFile)(process.execPath, ["-C", "source", file]);
    expect(stdout.trim().split("\n")).toEqual(said);
  } finally {
    rmSync(file, { force: true });
    await server.close();
  }
});
