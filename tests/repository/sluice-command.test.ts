import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");

describe("./sluice", () => {
  it("is the command, from any folder, with nothing to build", () => {
    const check = ["check", "ip=203.0.113.7", "endpoint=/login", "method=POST", "--json"];
    const args = [...check, "--config", join(root, "config/policies.yaml")];
    const printed = execFileSync(join(root, "sluice"), args, { cwd: tmpdir(), encoding: "utf8" });
    expect(JSON.parse(printed)).toMatchObject({ allowed: true, policy: "login", remaining: 4 });
  });
});
