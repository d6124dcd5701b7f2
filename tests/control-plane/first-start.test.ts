import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";

const main = fileURLToPath(new URL("../../packages/cli/src/main.ts", import.meta.url));
let compiled: string;
let folder: string;
let running: ChildProcess | undefined;

beforeAll(async () => {
  compiled = await mkdtemp(join(tmpdir(), "sluice-compiled-"));
});
afterAll(() => rm(compiled, { recursive: true, force: true }));
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-first-"));
});
afterEach(async () => {
  running?.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

interface Run {
  readonly shown: string;
  readonly logged: string;
  readonly code: number | null;
}

/** Serves until it has printed its greeting, or has ended. */
function serve(...args: readonly string[]): Promise<Run> {
  const ports = { SLUICE_HTTP_PORT: "0", SLUICE_GRPC_PORT: "off", SLUICE_ADMIN_PORT: "0" };
  const child = spawn(process.execPath, ["-C", "source", main, "serve", ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compiled, ...ports },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running = child;
  let [shown, logged] = ["", ""];
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    logged += text;
  });
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    shown += text;
    if (shown.includes("listening") || shown.includes("Ask it something")) child.kill();
  });
  return new Promise((resolve) => child.once("close", (code) => resolve({ shown, logged, code })));
}

it("stores the first token in a file that only its owner can read, names that file, and prints the token only to a terminal", async () => {
  const store = `sqlite:${join(folder, "store.db")}`;
  const first = await serve("--store", store);
  const file = join(folder, "store.db-admin-token");
  const token = (await readFile(file, "utf8")).trim();
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(first.shown).toContain("export SLUICE_TOKEN=$(cat store.db-admin-token)");
  expect(first.shown + first.logged).not.toContain(token);
  expect(first.shown).toContain("the policy store sqlite:");
  expect(first.logged).toContain("the first admin token was created");
  const second = await serve("--store", store);
  expect(second.code).toBe(0);
  expect(second.shown + second.logged).not.toContain(token);
  expect(second.shown).not.toContain("admin token");
}, 60_000);

it("keeps it out of JSON logs, which are then all that the terminal shows", async () => {
  const { shown, logged } = await serve(
    "--store",
    "sqlite:store.db",
    "--log-format",
    "json",
    "--admin-token-file",
    "token",
  );
  const token = (await readFile(join(folder, "token"), "utf8")).trim();
  expect(shown).toContain("the first admin token was created");
  expect(shown + logged).not.toContain(token);
}, 60_000);

it("fails if the seed has a problem, says which, and writes nothing", async () => {
  const seed = join(folder, "seed.yaml");
  await writeFile(seed, "policies: [{ id: p, limits: [{ by: [user], windows: [many] }] }]\n");
  const bad = await serve("--store", "sqlite:store.db", "--seed", seed);
  expect(bad.code).toBe(2);
  expect(bad.logged).toContain("many");
  expect(bad.logged).toContain(`SLUICE_SEED (--seed): ${seed} cannot be used:\n  ${seed}:1:`);
  await writeFile(seed, "policies: [{ id: p, limits: [{ by: [user], windows: [5/h] }], on_failure: open }]\n");
  const good = await serve("--store", "sqlite:store.db", "--seed", seed);
  expect([good.code, good.shown]).toEqual([0, expect.stringContaining("1 policy from the policy store")]);
}, 60_000);

it("fails if the store cannot be opened, and says what to do", async () => {
  await writeFile(join(folder, "notes.txt"), "nothing like a database, but long enough to be read\n".repeat(100));
  const { code, logged } = await serve("--store", "sqlite:notes.txt");
  expect([code, logged]).toEqual([2, expect.stringContaining("SLUICE_STORE_URL (--store)")]);
  expect(logged).toContain("is not an SQLite database");
}, 60_000);
