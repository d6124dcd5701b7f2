import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { zstdCompressSync } from "node:zlib";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { environmentFor } from "../../scripts/runtime.mjs";
import { repositoryRoot } from "../repository/source-tree.ts";
import { admits, findNodes } from "./find-nodes.ts";
import { packOnce } from "./pack-once.ts";
import { Stranger } from "./stranger.ts";

/** Packing, installing and starting other Nodes takes minutes on a busy machine. */
const patienceMs = 300_000;
vi.setConfig({ testTimeout: patienceMs, hookTimeout: patienceMs });

const manifest = JSON.parse(readFileSync(path.join(repositoryRoot, "packages/cli/package.json"), "utf8")) as {
  readonly version: string;
  readonly engines: { readonly node: string };
};
const nodes = findNodes().filter(({ version }) => admits(manifest.engines.node, version));

let folder: string;
/** Has the command line and what it depends on, and no server. */
let laptop: Stranger;
let daemon: Daemon;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-laptop-"));
  const packed = await packOnce(environmentFor(nodes.at(-1)!.path));
  const needed = ["sluice", "@sluice/protocol", "@sluice/client", "@sluice/simulate", "@sluice/cli"];
  const tarballs = needed.map((name) => packed.get(name)!);
  laptop = new Stranger();
  await laptop.install(environmentFor(nodes.at(-1)!.path), tarballs);

  const store = `sqlite:${path.join(folder, "store.db")}`;
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", adminPort: "0", store });
  if (reading.kind === "problems") throw new Error("settings");
  daemon = await startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
  env = {
    SLUICE_SERVER: daemon.url,
    SLUICE_ADMIN_URL: daemon.addresses.admin[0],
    SLUICE_TOKEN: daemon.firstToken?.token,
  };
});

afterAll(async () => {
  await daemon?.close();
  laptop?.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Of a command that must fail: how it ends, and what it says. */
async function failure(run: Promise<string>): Promise<{ readonly code: unknown; readonly stderr: unknown }> {
  const error = await run.then(
    () => expect.unreachable("it ends with 0"),
    (caught: Error) => caught,
  );
  const { code, stderr } = error.cause as { code?: unknown; stderr?: unknown };
  return { code, stderr };
}

describe("the command line alone", () => {
  it("brings little along, and nothing that a server needs", () => {
    expect(laptop.listPackages().toSorted()).toEqual([
      "@bufbuild/protobuf",
      "@sluice/cli",
      "@sluice/client",
      "@sluice/protocol",
      "@sluice/simulate",
      "commander",
      "sluice",
      "yaml",
    ]);
  });
});

describe.each(nodes)("the command line alone on Node $version", ({ path: node }) => {
  const run = (...args: readonly string[]): Promise<string> => laptop.runCommand(node, "sluice", args, env);

  it("says its version and its commands", async () => {
    expect(await run("--version")).toBe(`${manifest.version}\n`);
    expect(await run("--help")).toMatch(/serve .*\n[\s\S]*policy /);
  });

  it("asks a server, and decides without one", async () => {
    expect(await run("status")).toMatch(/^status +ready\n/);
    const decided = await run("check", "ip=203.0.113.7", "--local", "--json");
    expect(JSON.parse(decided)).toMatchObject({ allowed: true, policy: "default" });
  });

  it("plans a change of policies", async () => {
    const file = path.join(folder, "policies.yaml");
    writeFileSync(file, "policies: [{ id: api, limits: [{ by: [user], windows: [5/s] }], on_failure: open }]\n");
    expect(await run("policy", "lint", file)).toContain("0 errors");
    const planned = await run("policy", "apply", file, "--dry-run");
    expect(planned).toContain("1 to create, 0 to change, 0 to delete, 0 unchanged");
    expect(planned).toContain("+ id: api");
    const token = await run("token", "make", "--name", "gateway", "--role", "check", "--entry");
    expect(token).toMatch(/^sluice_/);
  });

  it("replays a log against policies", async () => {
    const file = path.join(folder, "candidate.yaml");
    writeFileSync(file, "policies: [{ id: api, limits: [{ by: [ip], windows: [1/m] }], on_failure: open }]\n");
    const log = path.join(folder, "access.log.zst");
    const line = '203.0.113.7 - - [31/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 17\n';
    writeFileSync(log, zstdCompressSync(line.repeat(3)));
    const replayed = JSON.parse(await run("simulate", log, "--policies", file, "--json"));
    expect(replayed.result).toMatchObject({ requests: 3, candidate: { denied: 2 } });
  });

  it("says what to install where a server is needed, with exit code 2", async () => {
    const install = `npm install @sluice/server@${manifest.version}`;
    for (const args of [
      ["serve", "--config", "policies.yaml"],
      ["token", "make", "--name", "x", "--role", "admin", "--store", "sqlite:x.db"],
      ["check", "user=u1", "--local", "--redis", "redis://127.0.0.1:1"],
    ]) {
      const { code, stderr } = await failure(run(...args));
      expect([code, stderr], args.join(" ")).toEqual([2, expect.stringContaining(install)]);
    }
    expect(await run("serve", "--help")).toContain(install);
    expect(await run("help", "serve")).toContain(install);
  });
});
