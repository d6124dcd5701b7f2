import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { repositoryRoot } from "./source-tree.ts";

// A clone in a folder that is hard to quote, and an npm that records its calls and then does as scripted.
let folder: string;
let clone: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-install-"));
  clone = path.join(folder, "a clône, 'quoted'");
  mkdirSync(clone);
  mkdirSync(path.join(folder, "bin"));
  writeFileSync(path.join(clone, "package-lock.json"), "{}");
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function placeNpm(script: string): void {
  const npm = path.join(folder, "bin", "npm");
  writeFileSync(npm, `#!/bin/sh\nmkdir -p node_modules\necho "$@" >> "${folder}/calls"\n${script}\n`);
  chmodSync(npm, 0o755);
}

const untilReleased = `while [ ! -e "$(dirname "$0")/released" ]; do sleep 0.02; done`;

function releaseNpm(): void {
  writeFileSync(path.join(folder, "bin", "released"), "");
}

function start(extent = "everything"): ChildProcess {
  const script = `
    const { ensureInstalled, InstallError } = await import(process.argv[1]);
    try {
      const { installed } = await ensureInstalled(process.argv[2], process.argv[3]);
      process.stdout.write(installed ? "installed" : "nothing to do");
    } catch (error) {
      process.stderr.write(error.message);
      process.exit(error instanceof InstallError ? error.exitCode : 99);
    }`;
  const module = path.join(repositoryRoot, "scripts", "ensure-installed.mjs");
  return spawn(process.execPath, ["--input-type=module", "-e", script, `file://${module}`, clone, extent], {
    env: { ...process.env, PATH: `${path.join(folder, "bin")}${path.delimiter}${process.env.PATH}` },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function ended(child: ChildProcess): Promise<{ code: number | null; out: string; err: string }> {
  let out = "";
  let err = "";
  child.stdout?.on("data", (chunk) => {
    out += chunk;
  });
  child.stderr?.on("data", (chunk) => {
    err += chunk;
  });
  const [code] = await once(child, "close");
  return { code, out, err };
}

async function prints(child: ChildProcess, text: string): Promise<void> {
  let seen = "";
  for await (const chunk of child.stderr?.iterator({ destroyOnReturn: false }) ?? []) {
    seen += chunk;
    if (seen.includes(text)) return;
  }
  throw new Error(`ended with "${seen}", without "${text}"`);
}

function calls(): readonly string[] {
  return readFileSync(path.join(folder, "calls"), "utf8").trim().split("\n");
}

/** npm runs, and is known to hold the lock. */
async function npmRuns(): Promise<void> {
  await vi.waitFor(() => {
    const owner = JSON.parse(readFileSync(path.join(clone, ".sluice", "install.lock", "owner"), "utf8"));
    expect(owner.pids).toHaveLength(2);
    expect(calls()).toHaveLength(1);
  }, 10_000);
}

function placeLock(pids: readonly number[], host: string): void {
  mkdirSync(path.join(clone, ".sluice", "install.lock"), { recursive: true });
  const owner = JSON.stringify({ pids, host, id: "somebody else" });
  writeFileSync(path.join(clone, ".sluice", "install.lock", "owner"), owner);
}

describe("installing dependencies", () => {
  it("happens once for a lock file, and again when it changes", async () => {
    placeNpm("exit 0");
    expect(await ended(start())).toEqual({ code: 0, out: "installed", err: "Installing dependencies…\n" });
    expect(await ended(start())).toEqual({ code: 0, out: "nothing to do", err: "" });
    writeFileSync(path.join(clone, "package-lock.json"), '{ "changed": true }');
    expect(await ended(start())).toMatchObject({ code: 0, out: "installed" });
    expect(calls()).toHaveLength(2);
    expect(calls()[0]).toMatch(/^install --no-save --include=dev --include=optional /);
  });

  it("installs only what serving needs, and the rest on request", async () => {
    placeNpm("exit 0");
    expect((await ended(start("serving"))).out).toBe("installed");
    expect((await ended(start("serving"))).out).toBe("nothing to do");
    expect((await ended(start())).out).toBe("installed");
    expect((await ended(start("serving"))).out).toBe("nothing to do");
    expect((await ended(start())).out).toBe("nothing to do");
    const [serving, everything, ...more] = calls();
    expect(serving).toContain("--omit=dev --include-workspace-root --workspace=packages/server");
    expect(everything).toContain("--include=dev");
    expect(everything).not.toContain("--workspace");
    expect(more).toEqual([]);
  });

  it("keeps npm's exit code and output when it fails, and is tried again the next time", async () => {
    placeNpm("echo 'no such registry' >&2; exit 7");
    const failure = await ended(start());
    expect(failure.code).toBe(7);
    expect(failure.err).toMatch(/no such registry[\s\S]*`npm install`[\s\S]*exited with 7/);
    placeNpm("exit 0");
    expect(await ended(start())).toMatchObject({ code: 0, out: "installed" });
  });

  it("says what is in the way if it cannot begin", async () => {
    placeNpm("exit 0");
    writeFileSync(path.join(clone, ".sluice"), "a file where a folder is needed");
    expect(await ended(start())).toMatchObject({
      code: 1,
      err: expect.stringMatching(/could not be installed: .*\.sluice/),
    });
  });

  it("is done by one of two that start together, while the other waits", async () => {
    placeNpm(untilReleased);
    const first = start();
    await prints(first, "Installing");
    const second = start();
    await prints(second, "Waiting for another process");
    releaseNpm();
    const answers = await Promise.all([ended(first), ended(second)]);
    expect(answers.map(({ code, out }) => [code, out])).toEqual([
      [0, "installed"],
      [0, "nothing to do"],
    ]);
    expect(calls()).toHaveLength(1);
  });

  it("takes over from a start that was killed", async () => {
    const { pid } = spawnSync(process.execPath, ["--version"]);
    placeLock([pid], hostname());
    placeNpm("exit 0");
    expect(await ended(start())).toMatchObject({ code: 0, out: "installed" });
    expect(existsSync(path.join(clone, ".sluice", "install.lock"))).toBe(false);
  });

  it("waits for the npm of a start that was killed", async () => {
    placeNpm(untilReleased);
    const first = start();
    await npmRuns();
    first.kill("SIGKILL");
    const second = start();
    await prints(second, "Waiting for another process");
    releaseNpm();
    expect(await ended(second)).toMatchObject({ code: 0, out: "installed" });
  });

  it("leaves neither a lock nor a stamp when it is interrupted", async () => {
    placeNpm(untilReleased);
    const interrupted = start();
    const answer = ended(interrupted);
    await npmRuns();
    interrupted.kill("SIGTERM");
    expect(await answer).toMatchObject({ code: 143 });
    expect(existsSync(path.join(clone, ".sluice", "install.lock"))).toBe(false);
    expect(existsSync(path.join(clone, "node_modules", ".sluice-installed"))).toBe(false);
  });
});
