import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FollowedFiles, followFiles } from "./follow-files.ts";

let folder: string;
let file: string;
let files: FollowedFiles<number> | undefined;
let heard: string[];
/** What reading comes to, time by time; the last one from then on. */
let readings: (number | Error)[];
let read: number;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-follow-"));
  file = join(folder, "file");
  await writeFile(file, "one");
  [heard, readings, read] = [[], [1], 0];
});

afterEach(async () => {
  files?.close();
  files = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function follow(pollMs = 5): Promise<FollowedFiles<number>> {
  files = await followFiles({
    paths: [file],
    pollMs,
    async load(): Promise<number> {
      const reading = readings[Math.min(read, readings.length - 1)]!;
      read += 1;
      if (reading instanceof Error) throw reading;
      return reading;
    },
    onChange: (loaded) => heard.push(`read ${loaded}`),
    onRefused: (error) => heard.push(`refused ${(error as Error).message}`),
  });
  return files;
}

const patience = { timeout: 30_000, interval: 5 };

describe("files that are followed", () => {
  it("are read first, and again when they change", async () => {
    readings = [1, 2];
    expect((await follow()).first).toBe(1);
    expect(heard).toEqual([]);
    await writeFile(file, "two, and longer");
    await expect.poll(() => heard[0], patience).toBe("read 2");
  });

  it("fail at once if they cannot be used at first", async () => {
    readings = [new Error("bad")];
    await expect(follow()).rejects.toThrow("bad");
  });

  it("are not believed to be bad when they are good at the next look", async () => {
    readings = [1, new Error("half written"), 2];
    await follow();
    await rename(file, `${file}.old`);
    await expect.poll(() => heard, patience).toEqual(["read 2"]);
  });

  it("are reported as bad once, when they stay so", async () => {
    readings = [1, new Error("bad")];
    await follow();
    await rename(file, `${file}.old`);
    await expect.poll(() => heard, patience).toEqual(["refused bad"]);
    readings = [2];
    await rename(`${file}.old`, file);
    await expect.poll(() => heard, patience).toEqual(["refused bad", "read 2"]);
  });

  it("are tried again though they do not change, because want of file descriptors passes as well", async () => {
    readings = [1, new Error("EMFILE")];
    await follow();
    await writeFile(file, "two, and longer");
    await expect.poll(() => read, patience).toBeGreaterThan(4);
    expect(heard).toEqual(["refused EMFILE"]);
    readings = [2];
    await expect.poll(() => heard, patience).toEqual(["refused EMFILE", "read 2"]);
  });

  it("are read and judged at once on request", async () => {
    readings = [1, 2, new Error("bad"), 3];
    const { reload } = await follow(3_600_000);
    await reload();
    await reload();
    await reload();
    expect(heard).toEqual(["read 2", "refused bad", "read 3"]);
  });

  it("are found behind links that are swapped", async () => {
    for (const version of ["one", "two"]) {
      await mkdir(join(folder, version));
      await writeFile(join(folder, version, "file"), version);
    }
    const link = join(folder, "data");
    await symlink("one", link);
    file = join(link, "file");
    readings = [1, 2];
    await follow();
    await symlink("two", `${link}.next`);
    await rename(`${link}.next`, link);
    await expect.poll(() => heard, patience).toEqual(["read 2"]);
  });

  it("are no longer read once they are not followed", async () => {
    readings = [1, 2];
    const { close, reload } = await follow();
    close();
    await writeFile(file, "two, and longer");
    await reload();
    expect(heard).toEqual([]);
    expect(read).toBe(1);
  });
});
