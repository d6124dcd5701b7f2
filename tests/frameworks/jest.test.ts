import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const folder = fileURLToPath(new URL("jest-app", import.meta.url));
const jest = createRequire(import.meta.url).resolve("jest/bin/jest");

/** What Jest prints about the app in CommonJS. */
function runJest(options: string): Promise<string> {
  const args = [jest, "--rootDir", folder, "--config", "{}"];
  const env = { ...process.env, NODE_OPTIONS: options };
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: folder, env }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
}

describe("an app in CommonJS under Jest", () => {
  it("is tested by the option that docs/apps.md names, with fake timers", async () => {
    const option = /NODE_OPTIONS=(\S+) npx jest/.exec(
      readFileSync(new URL("../../docs/apps.md", import.meta.url), "utf8"),
    )?.[1];
    expect(option).toBe("--experimental-vm-modules");
    expect(await runJest(option!)).toMatch(/Tests: +1 passed, 1 total/);
  });
});
