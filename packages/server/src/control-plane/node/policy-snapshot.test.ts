import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PolicyFile } from "sluice/policy-file";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { digestFiles } from "../../data-plane/policy-files/policy-files.ts";
import {
  type PolicySnapshot,
  readPolicySnapshot,
  renderPolicySnapshot,
  writePolicySnapshot,
} from "./policy-snapshot.ts";

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-snapshot-"));
  file = join(folder, "snapshot.json");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const path = "/etc/sluice/policies.yaml";

function createSnapshot(text: string, generation = 3): PolicySnapshot {
  const files: readonly PolicyFile[] = [{ file: path, text }];
  return { path, files, digest: digestFiles(files), generation, writtenMs: Date.UTC(2026, 0, 2) };
}

describe("a policy snapshot", () => {
  it("comes back as it was written, readable by its owner alone", async () => {
    const snapshot = createSnapshot("policies: []\n# ünï\n");
    await writePolicySnapshot(file, snapshot);
    expect(await readPolicySnapshot(file, path)).toEqual(snapshot);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(["snapshot.json"]);
  });

  it("replaces the previous one, and creates its folder", async () => {
    const deep = join(folder, "a", "b", "snapshot.json");
    await writePolicySnapshot(deep, createSnapshot("one"));
    await chmod(deep, 0o644);
    await writePolicySnapshot(deep, createSnapshot("two"));
    expect((await readPolicySnapshot(deep, path))?.files[0]?.text).toBe("two");
    expect((await stat(deep)).mode & 0o777).toBe(0o600);
  });

  it("is undefined if there is none", async () => {
    expect(await readPolicySnapshot(file, path)).toBeUndefined();
  });

  it("is not mistaken for a snapshot of other policies", async () => {
    await writePolicySnapshot(file, createSnapshot("one"));
    await expect(readPolicySnapshot(file, "/etc/sluice/polices.yaml")).rejects.toThrow(
      "holds the policies of /etc/sluice/policies.yaml, and not those of /etc/sluice/polices.yaml",
    );
  });

  const good = renderPolicySnapshot(createSnapshot("policies: []\n"));
  it.each([
    ["truncated", good.slice(0, -20), /truncated/],
    ["empty", "", /truncated/],
    ["other JSON", "[1]", /not a snapshot/],
    ["of a later format", good.replace('"sluice_policy_snapshot":1', '"sluice_policy_snapshot":2'), /not a snapshot/],
    ["edited by hand", good.replace("policies: []", "policies: [ ]"), /was changed/],
    ["without files", good.replace('"files":', '"other":'), /lacks/],
    ["without a time", good.replace(/"written":"[^"]*"/, '"written":"soon"'), /when it was written/],
  ])("is refused if it is %s", async (_what, text, reason) => {
    await writeFile(file, text);
    await expect(readPolicySnapshot(file, path)).rejects.toThrow(reason);
  });

  /** A leftover draft, or one being written now: half a snapshot, last touched this long ago. */
  async function leaveDraft(name: string, ageMs: number): Promise<void> {
    const draft = join(folder, name);
    await writeFile(draft, renderPolicySnapshot(createSnapshot("new")).slice(0, 50));
    const touched = new Date(Date.now() - ageMs);
    await utimes(draft, touched, touched);
  }

  it("stays whole when its writer ends before renaming the new one, and the draft is deleted later", async () => {
    await writePolicySnapshot(file, createSnapshot("old"));
    await leaveDraft(".snapshot.json.draft-1-abc", 2 * 3_600_000);
    expect((await readPolicySnapshot(file, path))?.files[0]?.text).toBe("old");
    await writePolicySnapshot(file, createSnapshot("newer"));
    expect((await readPolicySnapshot(file, path))?.files[0]?.text).toBe("newer");
    expect(await readdir(folder)).toEqual(["snapshot.json"]);
  });

  it("leaves another writer's draft alone, even from another container with the same process id", async () => {
    const draft = `.snapshot.json.draft-${process.pid}`;
    await leaveDraft(draft, 0);
    await writePolicySnapshot(file, createSnapshot("one"));
    expect(await readdir(folder)).toEqual([draft, "snapshot.json"]);
  });

  it("is whole if several write at once, and none of them fails", async () => {
    const texts = Array.from({ length: 20 }, (_, i) => String(i).repeat(20_000));
    await Promise.all(texts.map((text) => writePolicySnapshot(file, createSnapshot(text))));
    expect(texts).toContain((await readPolicySnapshot(file, path))?.files[0]?.text);
    expect(await readdir(folder)).toEqual(["snapshot.json"]);
  });

  it("leaves no draft if it cannot be renamed", async () => {
    await mkdir(file);
    await expect(writePolicySnapshot(file, createSnapshot("one"))).rejects.toThrow();
    expect(await readdir(folder)).toEqual(["snapshot.json"]);
  });

  it("is whole whenever its writer is killed", async () => {
    const script = `
      import { digestFiles } from ${JSON.stringify(new URL("../../data-plane/policy-files/policy-files.ts", import.meta.url).href)};
      import { writePolicySnapshot } from ${JSON.stringify(new URL("policy-snapshot.ts", import.meta.url).href)};
      for (let generation = 1; ; generation++) {
        const files = [{ file: "p.yaml", text: String(generation).repeat(50_000) }];
        const snapshot = { path: ${JSON.stringify(path)}, files, digest: digestFiles(files), generation, writtenMs: 0 };
        await writePolicySnapshot(${JSON.stringify(file)}, snapshot);
        if (generation % 7 === 3) process.stdout.write("x");
      }`;
    for (let round = 0; round < 3; round++) {
      const child = spawn(process.execPath, ["-C", "source", "--input-type=module", "-e", script]);
      for (let marks = 0; marks <= round; marks++) await once(child.stdout, "data");
      child.kill("SIGKILL");
      await once(child, "exit");
      expect((await readPolicySnapshot(file, path))?.generation).toBeGreaterThan(0);
    }
  }, 60_000);
});
