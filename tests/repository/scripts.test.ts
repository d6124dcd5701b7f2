import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startArguments } from "../../scripts/start-arguments.mjs";
import { repositoryRoot } from "./source-tree.ts";

let folder: string;
let child: ChildProcess | undefined;
let printed: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice scripts "));
  printed = "";
});

afterEach(() => {
  child?.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a script without a terminal, as continuous integration does. Resolves with its exit code. */
function run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<number | null> {
  child = spawn(process.execPath, args, {
    cwd: repositoryRoot,
    env: { PATH: process.env.PATH, CI: "true", SLUICE_GRPC_PORT: "0", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
  }
  const running = child;
  return new Promise((resolve) => running.once("close", resolve));
}

async function printedUrl(): Promise<string> {
  await expect.poll(() => printed, { timeout: 60_000, interval: 10 }).toMatch(/listens on http:\S+\n/);
  return /listens on (\S+)/.exec(printed)![1]!;
}

describe("npm start", () => {
  it("serves, passes on SIGTERM, and ends with 0", async () => {
    const store = ["--store", `sqlite:${path.join(folder, "policies.db")}`, "--seed", "config/policies.yaml"];
    const ended = run(["scripts/start.mjs", "--port", "0", "--admin-port", "0", ...store]);
    const ready = await fetch(`${await printedUrl()}/readyz`);
    expect(await ready.json()).toMatchObject({ status: "ready", policies: 4 });
    expect(printed).toMatch(/first admin token of the control plane is in .*policies\.db-admin-token/);
    child?.kill("SIGTERM");
    expect(await ended).toBe(0);
  });

  it("keeps policies in a store in the clone by default", () => {
    const own = ["--store", "sqlite:/clone/.sluice/policies.db"];
    const seed = ["--seed", "/clone/config/policies.yaml"];
    const started = (args: readonly string[], env = {}) => startArguments(args, env, "/clone");
    expect(started(["--port", "1"])).toEqual([...own, ...seed, "--port", "1"]);
    expect(started(["--seed=x.yaml"])).toEqual([...own, "--seed=x.yaml"]);
    expect(started([], { SLUICE_SEED: "x.yaml" })).toEqual(own);
    for (const args of [["--config", "x.yaml"], ["--config=x.yaml"], ["--store", "sqlite:x"]])
      expect(started(args)).toEqual(args);
    for (const env of [{ RATE_LIMIT_CONFIG: "x.yaml" }, { SLUICE_STORE_URL: "sqlite:x" }])
      expect(started([], env)).toEqual([]);
  });

  it("resolves a relative path from the user's folder", async () => {
    writeFileSync(path.join(folder, "mine.yaml"), "policies: [{ id: mine, unlimited: true }]\n");
    const npm = { npm_lifecycle_event: "start", INIT_CWD: folder };
    const ended = run(["scripts/start.mjs", "--port", "0", "--config", "mine.yaml"], npm);
    const answer = await fetch(`${await printedUrl()}/v1/policies`);
    expect(await answer.json()).toMatchObject({ policies: [{ id: "mine" }] });
    child?.kill("SIGTERM");
    expect(await ended).toBe(0);
  });
});

describe("npm test", () => {
  it("ends with its count even if no Node runs TypeScript", async () => {
    const lock = "{}";
    cpSync(path.join(repositoryRoot, "scripts"), path.join(folder, "scripts"), { recursive: true });
    writeFileSync(path.join(folder, "package-lock.json"), lock);
    mkdirSync(path.join(folder, "node_modules"));
    const digest = createHash("sha256").update(lock).digest("hex");
    writeFileSync(path.join(folder, "node_modules", ".sluice-installed"), digest);
    const old = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.0' } });";
    const code = await run(["--import", `data:text/javascript,${old}`, path.join(folder, "scripts", "test.mjs")]);
    expect(code).toBe(1);
    expect(printed).toContain("This is Node 20.20.0");
    expect(printed).toMatch(/\n0 passed, 1 failed\n$/);
  });
});
