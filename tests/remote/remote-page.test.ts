import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readSourceTree, repositoryRoot } from "../repository/source-tree.ts";
import { type SluiceProcess, startSluice } from "./sluice-process.ts";

/** The server of this test instead of the page's, and longer timeouts for a busy machine. */
function withOwnServer(code: string, address: string): string {
  return code
    .replace('connect("grpc://127.0.0.1:8081")', 'connect("grpc://127.0.0.1:8081", {})')
    .replace('"grpc://127.0.0.1:8081", {', `"${address}", { deadlineMs: 15_000,`);
}

describe.each([
  { file: "docs/remote.md", least: 5 },
  { file: "packages/client/README.md", least: 1 },
  { file: "packages/client/AGENTS.md", least: 1 },
])("the examples in $file", ({ file, least }) => {
  const page = readSourceTree().get(file) ?? "";
  const policies = /^```yaml\n([\s\S]*?)^```$/m.exec(page)?.[1] ?? "";
  /** Every TypeScript block; a text block right after one holds its output. */
  const examples = [...page.matchAll(/^```ts\n([\s\S]*?)^```\n+```text\n([\s\S]*?)^```$/gm)];
  let folder: string;
  let server: SluiceProcess;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "sluice-page-"));
    const policyFile = path.join(folder, "policies.yaml");
    await writeFile(policyFile, policies);
    server = await startSluice("--config", policyFile);
  }, 60_000);

  afterAll(async () => {
    await server?.close();
    await rm(folder, { recursive: true, force: true });
  });

  it("are found, each with its output", () => {
    expect(examples.length).toBe(page.match(/^```ts$/gm)?.length);
    expect(examples.length).toBeGreaterThanOrEqual(least);
  });

  for (const { 1: code = "", 2: output = "", index } of examples) {
    const line = page.slice(0, index).split("\n").length;
    it(`run, each in its own process, and print what the page says: the one in line ${line}`, async () => {
      const args = ["-C", "source", "--input-type=module-typescript", "-e", withOwnServer(code, server.grpc)];
      // Without an environment variable there are no colours.
      const options = { cwd: repositoryRoot, env: {}, timeout: 30_000 };
      const { stdout } = await promisify(execFile)(process.execPath, args, options);
      expect(stdout).toBe(output);
    });
  }
});
