import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");

const check = ["check", "ip=203.0.113.7", "endpoint=/login", "method=POST", "--json", "--config"];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice command "));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("./sluice", () => {
  it("is the command, from any folder, with nothing to build", () => {
    const args = [...check, join(root, "config/policies.yaml")];
    const printed = execFileSync(join(root, "sluice"), args, { cwd: folder, encoding: "utf8" });
    expect(JSON.parse(printed)).toMatchObject({ allowed: true, policy: "login", remaining: 4 });
  });

  it("is the same through links, and paths are relative to the current folder", () => {
    mkdirSync(join(folder, "bin"));
    symlinkSync(join(root, "sluice"), join(folder, "first"));
    symlinkSync("../first", join(folder, "bin", "sluice"));
    copyFileSync(join(root, "config/policies.yaml"), join(folder, "mine.yaml"));
    const printed = execFileSync("bin/sluice", [...check, "mine.yaml"], { cwd: folder, encoding: "utf8" });
    expect(JSON.parse(printed)).toMatchObject({ allowed: true, policy: "login", remaining: 4 });
  });
});
