import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SluiceError } from "sluice";
import { findPolicyFiles, isPolicyFileName } from "sluice/policy-file";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadPolicies, readPolicyFiles } from "./policy-files.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-files-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const policy = (id: string): string => `policies: [{ id: ${id}, limits: [{ windows: [5/s] }], on_failure: open }]\n`;

async function write(files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
}

async function catchFailure(path: string): Promise<SluiceError> {
  try {
    await loadPolicies(path);
  } catch (error) {
    if (error instanceof SluiceError) return error;
  }
  throw new Error("it did not fail as it should");
}

describe("policy files", () => {
  it("are a single file, whatever its name", async () => {
    await write({ "limits.conf": policy("a") });
    const { policySet } = await loadPolicies(join(folder, "limits.conf"));
    expect(policySet.policies.map((one) => one.id)).toEqual(["a"]);
  });

  it("are all YAML and JSON files of a folder, in the order of their names", async () => {
    await write({ "20.yml": policy("b"), "10.yaml": policy("a"), "30.json": JSON.stringify({ policies: [] }) });
    await write({ "notes.txt": "x", ".hidden.yaml": "[", "10.yaml~": "[", "#20.yml#": "[", "~x.yaml": "[" });
    await mkdir(join(folder, "sub.yaml"));
    expect(await findPolicyFiles(folder)).toEqual(["10.yaml", "20.yml", "30.json"].map((name) => join(folder, name)));
    expect((await loadPolicies(folder)).policySet.policies.map((one) => one.id)).toEqual(["a", "b"]);
  });

  it("do not include what editors and Kubernetes put next to them", () => {
    for (const name of ["..data", ".a.yaml.swp", "a.yaml~", "#a.yaml#", ".#a.yaml", "4913", "a.yaml.bak", "a.yaml.tmp"])
      expect(isPolicyFileName(name), name).toBe(false);
    for (const name of ["a.yaml", "a.YML", "a.b.json"]) expect(isPolicyFileName(name), name).toBe(true);
  });

  it("are reported with every problem of every file, each with its place", async () => {
    await write({ "a.yaml": "policies:\n  - id: a\n    limit: []\n", "b.yaml": "policies: [{ id: 7 }]\n" });
    const { code, problems } = await catchFailure(folder);
    expect(code).toBe("invalid_policies");
    const places = problems.map(({ place }) => `${place?.file?.slice(folder.length + 1)}:${place?.line}`);
    expect(new Set(places)).toEqual(new Set(["a.yaml:3", "b.yaml:1"]));
  });

  it("may not have the same id in two files", async () => {
    await write({ "a.yaml": policy("same"), "b.yaml": policy("same") });
    const { problems } = await catchFailure(folder);
    expect(problems[0]?.message).toContain("a.yaml");
    expect(problems[0]?.place?.file).toBe(join(folder, "b.yaml"));
  });

  it("must be there", async () => {
    expect((await catchFailure(join(folder, "nowhere.yaml"))).message).toContain("does not exist");
    expect((await catchFailure(folder)).message).toContain("holds no .yaml, .yml or .json file");
    await symlink("gone.yaml", join(folder, "link.yaml"));
    expect((await catchFailure(folder)).message).toContain("link.yaml does not exist");
  });

  it("are regular files: a pipe is a problem, alone and in a folder, and is not waited for", async () => {
    await write({ "a.yaml": policy("a") });
    execFileSync("mkfifo", [join(folder, "pipe.yaml")]);
    await symlink("pipe.yaml", join(folder, "link"));
    for (const path of [folder, join(folder, "pipe.yaml"), join(folder, "link")])
      expect((await catchFailure(path)).message, path).toContain("is neither a file nor a folder");
  });

  it("have a digest of their names and contents, and of nothing else", async () => {
    await write({ "a.yaml": policy("a"), "b.yaml": policy("b") });
    const { digest } = await readPolicyFiles(folder);
    await write({ "a.yaml": policy("a"), "notes.txt": "x" });
    expect((await readPolicyFiles(folder)).digest).toBe(digest);
    await write({ "a.yaml": policy("c") });
    expect((await readPolicyFiles(folder)).digest).not.toBe(digest);
    await write({ "a.yaml": policy("a"), "c.yaml": "policies: []\n" });
    expect((await readPolicyFiles(folder)).digest).not.toBe(digest);
  });
});
