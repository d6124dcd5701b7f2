import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PolicyStoreUnavailable } from "./errors.ts";
import { openPolicyStore } from "./open-policy-store.ts";
import type { PolicyStore } from "./policy-store.ts";
import { sample } from "./testing/sample-records.ts";

const opened: PolicyStore[] = [];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-sqlite-"));
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  rmSync(folder, { recursive: true, force: true });
});

async function open(url: string): Promise<PolicyStore> {
  const store = await openPolicyStore({ url });
  opened.push(store);
  return store;
}

function readMode(file: string): string {
  return (statSync(file).mode & 0o777).toString(8);
}

describe("an SQLite file", () => {
  it("is created with its folder, for its owner alone, and so are the files SQLite puts next to it", async () => {
    const file = path.join(folder, "new", "deep", "store.db");
    const store = await open(`sqlite:${file}`);
    await store.change((change) => change.putPolicy(sample.policy()));
    expect(store.where).toBe(`sqlite:${file}`);
    expect([file, `${file}-wal`, `${file}-shm`].map(readMode)).toEqual(["600", "600", "600"]);
    expect(readMode(path.dirname(file))).toBe("700");
  });

  it("keeps its changes when it is opened again, by each spelling of its URL", async () => {
    const file = path.join(folder, "a file?with#odd%20name.db");
    const store = await open(`sqlite:${file}`);
    await store.change((change) => change.putPolicy(sample.policy()));
    await store.close();
    for (const url of [`sqlite:${file}`, `sqlite://${file}`, `sqlite:${path.relative(process.cwd(), file)}`]) {
      const again = await open(url);
      expect(await again.read((view) => view.policy("login"))).toEqual(sample.policy());
    }
  });

  it("is unavailable once it was deleted or replaced, and the deleted file is not written to", async () => {
    const file = path.join(folder, "store.db");
    const store = await open(`sqlite:${file}`);
    await store.change((change) => change.nextGeneration());
    renameSync(file, `${file}.away`);
    const change = () => store.change((each) => each.nextGeneration());
    await expect(change()).rejects.toThrow(PolicyStoreUnavailable);
    await expect(store.readPulse()).rejects.toThrow(/deleted or replaced/);
    writeFileSync(file, "");
    await expect(change()).rejects.toThrow(/deleted or replaced/);
    renameSync(`${file}.away`, file);
    expect(await change()).toBe(2);
  });

  it("is waited for while another process writes, without blocking anything else", async () => {
    const file = path.join(folder, "store.db");
    const store = await open(`sqlite:${file}`);
    const other = new DatabaseSync(file);
    other.exec("begin immediate");
    const change = store.change((each) => each.nextGeneration());
    expect((await store.readPulse()).generation).toBe(0);
    other.exec("update sluice_pulse set generation = 7");
    other.exec("commit");
    other.close();
    expect(await change).toBe(8);
  });

  it.each([
    [
      "is not an SQLite database",
      (file: string) => writeFileSync(file, "something else, long enough to be read".repeat(50)),
    ],
    ["is a folder", (file: string) => mkdirSync(file)],
  ])("is unavailable, and is left as it is, if it %s", async (_what, make) => {
    const file = path.join(folder, "store.db");
    make(file);
    const error = await open(`sqlite:${file}`).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PolicyStoreUnavailable);
    expect((error as Error).message).toContain(file);
  });

  it("is unavailable if its folder cannot be created", async () => {
    writeFileSync(path.join(folder, "file"), "");
    chmodSync(path.join(folder, "file"), 0o400);
    await expect(open(`sqlite:${path.join(folder, "file", "store.db")}`)).rejects.toThrow(PolicyStoreUnavailable);
  });

  it.each(["sqlite:", "sqlite://", "", "file:x"])("is not named by %j", async (url) => {
    await expect(open(url)).rejects.toThrow(TypeError);
  });
});

it("keeps stores in memory apart", async () => {
  const [one, other] = [await open("sqlite::memory:"), await open("sqlite::memory:")];
  await one.change((change) => change.nextGeneration());
  expect((await other.readPulse()).generation).toBe(0);
  expect(one.where).toBe("sqlite::memory:");
});
