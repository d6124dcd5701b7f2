import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openPolicyStore } from "@sluice/sql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../../settings/parse-settings.ts";
import type { Settings } from "../../settings/settings.ts";
import { createRecordingLog } from "../../testing/recording-log.ts";
import { prepareTokenFile } from "./first-token-file.ts";
import { type OpenedStore, type OpenStoreOptions, openStore } from "./open-store.ts";
import type { SnapshotGeneration } from "./policy-snapshot.ts";
import { renderStoreUrl } from "./render-store-url.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-store-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const log = createRecordingLog(() => undefined);
const patienceMs = { kept: 0, alone: 0 };
const rows = { policies: [], underway: [], subjects: [], subjectLimits: [] };
const kept: SnapshotGeneration = { store: "x", generation: 1, killSwitch: undefined, rows, tokens: [] };

function settingsWith(flags: Record<string, string>): Settings {
  const reading = parseSettings({}, flags);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return reading.settings;
}

function open(
  url: string,
  recalled: SnapshotGeneration | undefined,
  topic?: OpenStoreOptions["topic"],
): Promise<OpenedStore> {
  const keeper = { recallStored: async () => recalled };
  return openStore({ url, settings: settingsWith({ store: url }), keeper, topic, log, patienceMs });
}

describe("opening the policy store", () => {
  const nobody = "postgres://ann:secret@127.0.0.1:1/sluice";

  it("opens one that is available", async () => {
    const { store, reached } = await open(`sqlite:${join(folder, "store.db")}`, undefined);
    expect(reached).toBe(true);
    expect((await store.readPulse()).generation).toBe(0);
    await store.close();
  });

  it("fails if it is unavailable and nothing was kept, and says what to do without showing the password", async () => {
    const error = await open(nobody, undefined).catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ name: "SettingError", message: expect.stringContaining("SLUICE_STORE_URL") });
    expect((error as Error).message).toContain("--policy-snapshot");
    expect((error as Error).message).not.toContain("secret");
  });

  it("continues with the kept policies if it is unavailable", async () => {
    const opened = await open(nobody, kept);
    expect(opened).toMatchObject({ kept: { stored: kept, keptIn: "snapshot" }, reached: false });
    await expect(opened.store.readPulse()).rejects.toThrow();
    await opened.store.close();
  });

  it.each([
    ["alone, if nothing is on disk", undefined, 5, "topic"],
    ["if they are newer than those on disk", kept, 5, "topic"],
    ["not if they are as old as those on disk", kept, 1, "snapshot"],
  ])("continues with the policies of a topic: %s", async (_when, onDisk, generation, keptIn) => {
    const inTopic = { generation, killSwitch: undefined, rows, tokens: [] };
    const opened = await open(nobody, onDisk, { recall: async () => inTopic });
    expect(opened).toMatchObject({ kept: { stored: { generation }, keptIn }, reached: false });
    await opened.store.close();
  });

  it("does not ask a topic if it is available", async () => {
    const topic = { recall: () => Promise.reject(new Error("was asked")) };
    const { store, reached, kept: none } = await open(`sqlite:${join(folder, "store.db")}`, undefined, topic);
    expect([reached, none]).toEqual([true, undefined]);
    await store.close();
  });

  it("refuses a schema of a later version, whatever was kept", async () => {
    const file = join(folder, "store.db");
    await (await openPolicyStore({ url: `sqlite:${file}` })).close();
    const database = new DatabaseSync(file);
    database.exec("update sluice_schema set version = 999");
    database.close();
    await expect(open(`sqlite:${file}`, kept)).rejects.toThrow("has schema version 999");
  });

  it.each([
    ["is not there", undefined, "does not exist"],
    ["has a mistake", "policies: [{ id: a, limits: [{ by: [ip], windows: [lots] }] }]", /\n {2}.*policies/],
    [
      "refers to what is not there",
      "subjects: [{ user: u1, limits: [{ policy: a, windows: [1/s] }] }]",
      /\n {2}.*subjects/,
    ],
  ])("creates no file if the seed %s, and one that exists is opened all the same", async (_what, text, reason) => {
    const [file, seed] = [join(folder, "store.db"), join(folder, "seed.yaml")];
    if (text !== undefined) await writeFile(seed, text);
    const url = `sqlite:${file}`;
    const openSeeded = (): Promise<OpenedStore> => {
      const keeper = { recallStored: async () => undefined };
      return openStore({ url, settings: settingsWith({ store: url, seed }), keeper, log, patienceMs });
    };
    await expect(openSeeded()).rejects.toThrow(reason);
    expect(await readdir(folder)).not.toContain("store.db");
    await (await openPolicyStore({ url })).close();
    await (await openSeeded()).store.close();
  });
});

describe("the address of a store", () => {
  it.each([
    ["postgres://ann:secret@db.example:5433/sluice?sslmode=require", "postgres://db.example:5433/sluice"],
    ["sqlite::memory:", "sqlite::memory:"],
    ["sqlite:/var/lib/sluice.db", "sqlite:/var/lib/sluice.db"],
    ["sqlite:///var/lib/sluice.db", "sqlite:/var/lib/sluice.db"],
    ["postgres://ann:secret@one,two:1/x", expect.not.stringContaining("secret")],
  ])("%s is shown as %s", (url, told) => expect(renderStoreUrl(url)).toEqual(told));
});

describe("the file of the first token", () => {
  it("is next to the store, readable by its owner alone, and whole", async () => {
    const store = `sqlite:${join(folder, "store.db")}`;
    const file = await prepareTokenFile({ store, adminTokenFile: undefined });
    expect(file.path).toBe(join(folder, "store.db-admin-token"));
    await writeFile(file.path, "an older one", { mode: 0o644 });
    await file.keep("sluice_token");
    expect(await readFile(file.path, "utf8")).toBe("sluice_token\n");
    expect((await stat(file.path)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(["store.db-admin-token"]);
  });

  it("leaves nothing behind if there is no token", async () => {
    await (await prepareTokenFile({ store: "sqlite::memory:", adminTokenFile: join(folder, "token") })).discard();
    expect(await readdir(folder)).toEqual([]);
  });

  it("is refused before the token is created, if it cannot be written", async () => {
    const adminTokenFile = join(folder, "missing", "token");
    await expect(prepareTokenFile({ store: "sqlite::memory:", adminTokenFile })).rejects.toThrow(
      "SLUICE_ADMIN_TOKEN_FILE",
    );
  });
});
