import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLimiter } from "../create-limiter.ts";
import { followPolicyFile, type PolicyFollower, policyFile } from "./index.ts";

const policy = (limit: number, id = "api"): string =>
  `policies:\n  - id: ${id}\n    limits: [{ by: [user], windows: [${limit}/h] }]\n    on_failure: open\n`;

let folder: string;
let followers: PolicyFollower[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-policy-file-"));
  followers = [];
});
afterEach(() => {
  for (const follower of followers) follower.close();
  rmSync(folder, { recursive: true });
});

describe("policies from files", () => {
  it("are used like any others, from one file or several", () => {
    const [one, other] = [join(folder, "one.yaml"), join(folder, "other.json")];
    writeFileSync(one, policy(2));
    writeFileSync(other, JSON.stringify({ policies: [{ id: "beta", unlimited: true, match: { endpoint: "/beta" } }] }));
    const limiter = createLimiter({ policies: policyFile(one, other) });
    expect(limiter.checkSync({ dimensions: { user: "ada" } }).limit).toBe(2);
    expect(limiter.snapshot.policySet.policies.map(({ id }) => id).sort()).toEqual(["api", "beta"]);
  });

  it("are refused with their place", () => {
    const file = join(folder, "bad.yaml");
    writeFileSync(file, policy(2).replace("windows", "widnows"));
    expect(() => policyFile(file)).toThrow(/bad\.yaml:3/);
    expect(() => policyFile(join(folder, "missing.yaml"))).toThrow(/missing\.yaml does not exist/);
    expect(() => policyFile(folder)).toThrow(/is a folder/);
  });
});

describe("a policy file that is followed", () => {
  it("is applied when it changes, also by being replaced; a bad one changes nothing", async () => {
    const file = join(folder, "limits.yaml");
    writeFileSync(file, policy(1));
    const limiter = createLimiter({ policies: policyFile(file) });
    const problems: unknown[] = [];
    const generations: number[] = [];
    const limitNow = (): unknown => limiter.checkSync({ dimensions: { user: "ada" }, preview: true }).limit;
    followers.push(
      followPolicyFile(limiter, file, {
        everyMs: 20,
        onProblem: (error) => problems.push(error),
        onChange: ({ generation }) => generations.push(generation),
      }),
    );
    const soon = { timeout: 30_000, interval: 20 };

    writeFileSync(file, policy(22));
    await expect.poll(limitNow, soon).toBe(22);
    writeFileSync(file, "policies: [");
    await expect.poll(() => problems.length, soon).toBeGreaterThan(0);
    expect(problems[0]).toMatchObject({ code: "invalid_policies" });
    expect(limitNow()).toBe(22);
    const next = join(folder, "next.yaml");
    writeFileSync(next, policy(333));
    renameSync(next, file);
    await expect.poll(limitNow, soon).toBe(333);
    rmSync(file);
    await expect.poll(() => problems.length, soon).toBeGreaterThan(1);
    expect(limitNow()).toBe(333);
    expect(generations).toEqual([2, 3]);
  });
});
