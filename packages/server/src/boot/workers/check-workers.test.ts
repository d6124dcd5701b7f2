import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { WorkerLink } from "../../observe/worker-link.ts";
import { parseSettings } from "../../settings/parse-settings.ts";
import type { Settings } from "../../settings/settings.ts";
import { silentLog } from "../../testing/test-service.ts";
import { startDaemon } from "../daemon.ts";
import { checkWorkers, countWorkers } from "./check-workers.ts";

let folder: string;
let config: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-check-workers-"));
  config = join(folder, "policies.yaml");
});

afterEach(() => rm(folder, { recursive: true, force: true }));

function readSettings(env: Record<string, string>): Settings {
  const reading = parseSettings({ SLUICE_WORKERS: "2", ...env });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return reading.settings;
}

const refusal = /SLUICE_WORKERS \(--workers\): counters in memory belong to one process/;
const limits = "rate_limits:\n  - { name: p, scope: user, capacity: 5, refill_rate: 1 }\n";

describe("how many workers there are", () => {
  it("is what settings say, and for auto one per core", () => {
    expect(countWorkers(readSettings({}))).toBe(2);
    expect(countWorkers(readSettings({ SLUICE_WORKERS: "auto" }))).toBe(availableParallelism());
  });
});

describe("whether there may be several workers", () => {
  it("is decided by settings, and by policy files if settings do not say", async () => {
    await writeFile(config, limits);
    const path = { RATE_LIMIT_CONFIG: config };
    await expect(checkWorkers(readSettings({}))).rejects.toThrow(refusal);
    await expect(checkWorkers(readSettings(path))).rejects.toThrow(refusal);
    for (const env of [{ SLUICE_REDIS_URL: "redis://a" }, { REDIS_CLUSTER_URL: "a:1" }])
      await expect(checkWorkers(readSettings({ ...path, ...env }))).resolves.toBeUndefined();
    await writeFile(config, `${limits}runtime: { redis: { host: a } }\n`);
    await expect(checkWorkers(readSettings(path))).resolves.toBeUndefined();
    await writeFile(config, `${limits}runtime: { fail_open: false }\n`);
    await expect(checkWorkers(readSettings(path))).rejects.toThrow(refusal);
  });

  it("is left to the first worker if policies cannot be read, which may have others to start with", async () => {
    await expect(checkWorkers(readSettings({ RATE_LIMIT_CONFIG: config }))).resolves.toBeUndefined();
    const worker: WorkerLink = { number: 1, askOthers: async () => [], answer() {} };
    await expect(startDaemon({ settings: readSettings({}), log: silentLog, worker })).rejects.toThrow(refusal);
  });
});
