import { watch as watchFolder } from "node:fs";
import { mkdir, mkdtemp, realpath, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type PolicyFilesWatch, type WatchOptions, watchPolicyFiles } from "./watch-policy-files.ts";

/** So slow that only events can explain a change being seen. */
const eventsOnly: WatchOptions = { quietMs: 10, pollMs: 3_600_000 };
/** Quick enough that a test need not wait, for what sends no events. */
const quickPoll: WatchOptions = { quietMs: 10, pollMs: 20 };

let folder: string;
let watched: PolicyFilesWatch | undefined;
let changes: number;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "sluice-watch-")));
  changes = 0;
});

afterEach(async () => {
  watched?.close();
  watched = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function watch(path: string, options: WatchOptions): Promise<void> {
  watched = await watchPolicyFiles(path, () => changes++, options);
}

async function expectChangeAfter(act: () => Promise<unknown>): Promise<void> {
  const before = changes;
  await act();
  await expect.poll(() => changes, { timeout: 30_000, interval: 5 }).toBeGreaterThan(before);
}

/** Lays a folder out as Kubernetes mounts a ConfigMap. */
async function mountConfigMap(version: string, text: string): Promise<void> {
  await mkdir(join(folder, `..${version}`));
  await writeFile(join(folder, `..${version}`, "policies.yaml"), text);
  await symlink(`..${version}`, join(folder, "..data_tmp"));
  await rename(join(folder, "..data_tmp"), join(folder, "..data"));
}

describe("watching policy files", () => {
  it("sees a file written in place", async () => {
    const file = join(folder, "policies.yaml");
    await writeFile(file, "a");
    await watch(file, eventsOnly);
    await expectChangeAfter(() => writeFile(file, "b"));
  });

  it("sees an editor's save by renaming, again and again", async () => {
    const file = join(folder, "policies.yaml");
    await writeFile(file, "a");
    await watch(file, eventsOnly);
    for (const text of ["b", "c", "d"]) {
      await expectChangeAfter(async () => {
        await writeFile(join(folder, ".policies.yaml.swp"), text);
        await rename(join(folder, ".policies.yaml.swp"), file);
      });
    }
  });

  it("sees a file deleted and made again", async () => {
    const file = join(folder, "policies.yaml");
    await writeFile(file, "a");
    await watch(file, eventsOnly);
    await expectChangeAfter(() => unlink(file));
    await expectChangeAfter(() => writeFile(file, "b"));
  });

  it("sees a file that is not there yet", async () => {
    const file = join(folder, "policies.yaml");
    await watch(file, eventsOnly);
    await expectChangeAfter(() => writeFile(file, "a"));
  });

  it("sees files come and go in a folder", async () => {
    await watch(folder, eventsOnly);
    await expectChangeAfter(() => writeFile(join(folder, "a.yaml"), "a"));
    await expectChangeAfter(() => writeFile(join(folder, "b.json"), "b"));
    await expectChangeAfter(() => unlink(join(folder, "a.yaml")));
  });

  it.each(["the folder", "a file in it"])("sees Kubernetes swap its ..data link, watching %s", async (what) => {
    await mountConfigMap("v1", "a");
    await symlink(join("..data", "policies.yaml"), join(folder, "policies.yaml"));
    await watch(what === "the folder" ? folder : join(folder, "policies.yaml"), eventsOnly);
    for (const version of ["v2", "v3"]) await expectChangeAfter(() => mountConfigMap(version, version));
  });

  it("sees a link further up the path replaced", async () => {
    for (const name of ["one", "two"]) {
      await mkdir(join(folder, name));
      await writeFile(join(folder, name, "policies.yaml"), name);
    }
    await symlink("one", join(folder, "current"));
    await watch(join(folder, "current", "policies.yaml"), eventsOnly);
    await expectChangeAfter(async () => {
      await symlink("two", join(folder, "next"));
      await rename(join(folder, "next"), join(folder, "current"));
    });
    await expectChangeAfter(() => writeFile(join(folder, "two", "policies.yaml"), "three"));
  });

  it("finds by polling what sent no event: the folder itself replaced", async () => {
    await mkdir(join(folder, "config"));
    await writeFile(join(folder, "config", "policies.yaml"), "a");
    await watch(join(folder, "config"), quickPoll);
    await expectChangeAfter(async () => {
      await mkdir(join(folder, "fresh"));
      await writeFile(join(folder, "fresh", "policies.yaml"), "b");
      await rename(join(folder, "config"), join(folder, "old"));
      await rename(join(folder, "fresh"), join(folder, "config"));
    });
    await expectChangeAfter(() => writeFile(join(folder, "config", "policies.yaml"), "c"));
  });

  it("says nothing of files that are not policies", async () => {
    await writeFile(join(folder, "policies.yaml"), "a");
    const names: (string | null)[] = [];
    const witness = watchFolder(folder, (_event, name) => names.push(name));
    await watch(folder, { quietMs: 0, pollMs: 3_600_000 });
    for (const name of ["notes.txt", ".hidden.yaml", "policies.yaml~", ".next"])
      await writeFile(join(folder, name), "x");
    await expect.poll(() => names, { timeout: 30_000, interval: 5 }).toContain(".next");
    await expectChangeAfter(() => rename(join(folder, ".next"), join(folder, "policies.yaml")));
    witness.close();
    expect(changes).toBe(1);
  });

  it("says nothing once closed", async () => {
    const file = join(folder, "policies.yaml");
    await watch(file, { quietMs: 0, pollMs: 1 });
    watched?.close();
    let others = 0;
    const other = await watchPolicyFiles(file, () => others++, { quietMs: 0, pollMs: 1 });
    await writeFile(file, "a");
    await expect.poll(() => others, { timeout: 30_000, interval: 5 }).toBeGreaterThan(0);
    other.close();
    expect(changes).toBe(0);
  });
});
