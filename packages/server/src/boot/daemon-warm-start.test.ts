import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import { createRecordingLog } from "../testing/recording-log.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

let folder: string;
let file: string;
let snapshot: string;
let daemon: Daemon | undefined;
let logged: { level: string; fields: Record<string, unknown>; message: string }[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-warm-"));
  file = join(folder, "policies.yaml");
  snapshot = join(folder, "kept", "snapshot.json");
  logged = [];
});

afterEach(async () => {
  await stop();
  await rm(folder, { recursive: true, force: true });
});

const log = createRecordingLog((line) => logged.push(line));

const allowing = (limit: number): string =>
  `policies: [{ id: p, limits: [{ by: [user], windows: [${limit}/h] }], on_failure: open }]\n`;
const broken = "policies: [{ id: p, limits: [{ by: [user], windows: [often] }] }]\n";

async function save(text: string): Promise<void> {
  await writeFile(join(folder, ".next"), text);
  await rename(join(folder, ".next"), file);
}

async function start(): Promise<Daemon> {
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", config: file, policySnapshot: snapshot });
  if (reading.kind === "problems") throw new Error("settings");
  daemon = await startDaemon({ settings: reading.settings, log, watch: { quietMs: 10, pollMs: 50 } });
  return daemon;
}

async function stop(): Promise<void> {
  await daemon?.close();
  daemon = undefined;
}

async function get(path: string): Promise<Record<string, unknown>> {
  return (await (await fetch(`${daemon?.url}${path}`)).json()) as Record<string, unknown>;
}

async function limitNow(): Promise<unknown> {
  const body = JSON.stringify({ dimensions: { user: "u" }, preview: true });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${daemon?.url}/v1/check`, { method: "POST", headers, body });
  return ((await response.json()) as Record<string, unknown>).limit;
}

const policies = async (): Promise<unknown> => (await get("/v1/status")).policies;
const metric = async (name: string): Promise<number> => {
  const text = await (await fetch(`${daemon?.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
};
const soon = { timeout: 30_000, interval: 20 };

/** Runs once with good policies, which are then stored. */
async function runOnce(limit: number): Promise<void> {
  await save(allowing(limit));
  await start();
  await stop();
}

describe("a start", () => {
  it("stores good policies, and the next ones that are applied", async () => {
    await save(allowing(5));
    await start();
    await expect.poll(() => readFile(snapshot, "utf8").catch(() => ""), soon).toContain("5/h");
    expect(await policies()).toMatchObject({ source: "files", state: "current", generation: 1, problem_count: 0 });
    await save(allowing(6));
    await expect.poll(() => readFile(snapshot, "utf8"), soon).toContain("6/h");
    expect(JSON.parse(await readFile(snapshot, "utf8"))).toMatchObject({ generation: 2, path: file });
    await save(broken);
    await expect
      .poll(async () => (await policies()) as object, soon)
      .toMatchObject({ state: "stale", source: "files" });
    expect(await readFile(snapshot, "utf8")).toContain("6/h");
  });

  it.each([
    ["are broken", () => save(broken)],
    ["are gone", () => rm(file)],
  ])(
    "uses the last good policies if the files %s, says so everywhere, and applies the files once they are good",
    async (_why, spoil) => {
      await runOnce(5);
      await spoil();
      logged = [];
      await start();
      expect(await limitNow()).toBe(5);
      const errors = logged.filter(({ level }) => level === "error");
      expect(errors).toHaveLength(1);
      expect(errors[0]).toMatchObject({
        fields: { path: file, snapshot, errors: 1, generation: 1 },
        event: "snapshot.used",
      });
      expect(await policies()).toMatchObject({ source: "snapshot", state: "stale", problem_count: 1 });
      expect(await get("/readyz")).toMatchObject({ status: "ready", config: "stale", problem_count: 1 });
      expect(await metric("sluice_config_from_snapshot")).toBe(1);
      expect(await metric("sluice_config_last_reload_successful")).toBe(0);
      expect(await metric("sluice_config_snapshot_timestamp_seconds")).toBeGreaterThan(1.7e9);
      await save(allowing(7));
      await expect.poll(limitNow, soon).toBe(7);
      expect(await policies()).toMatchObject({ source: "files", state: "current", generation: 2, problem_count: 0 });
      expect(await metric("sluice_config_from_snapshot")).toBe(0);
      expect(await metric("sluice_config_last_reload_successful")).toBe(1);
    },
  );

  it("continues without a new generation if the very files of the snapshot come back", async () => {
    await runOnce(5);
    await rm(file);
    await start();
    await save(allowing(5));
    await expect.poll(async () => (await policies()) as object, soon).toMatchObject({ source: "files", generation: 1 });
  });

  it("fails as usual if there is no snapshot, with every problem of the files", async () => {
    await save(broken);
    await expect(start()).rejects.toMatchObject({ code: "invalid_policies" });
    await rm(file);
    await expect(start()).rejects.toThrow("does not exist");
  });

  it("fails if the snapshot is damaged, and reports that too", async () => {
    await runOnce(5);
    await writeFile(snapshot, (await readFile(snapshot, "utf8")).slice(0, 60));
    await save(broken);
    await expect(start()).rejects.toMatchObject({ code: "invalid_policies" });
    expect(logged.filter(({ level }) => level === "error")).toMatchObject([
      {
        fields: { snapshot, reason: "is truncated, or not a snapshot at all" },
        message: "the policy snapshot cannot be used",
      },
    ]);
  });

  it("serves although the snapshot cannot be written, and warns", async () => {
    await save(allowing(5));
    await writeFile(join(folder, "kept"), "a file where a folder should be");
    await start();
    await expect.poll(() => logged.map(({ message }) => message).join(), soon).toMatch(/snapshot could not be written/);
    expect(await limitNow()).toBe(5);
    expect(await metric("sluice_config_snapshot_timestamp_seconds")).toBe(0);
  });
});
