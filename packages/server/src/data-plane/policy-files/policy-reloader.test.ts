import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseServedPolicies } from "./parse-served-policies.ts";
import type { PolicyFiles } from "./policy-files.ts";
import { createPolicyReloader, type PolicyReloader, type PolicyReloaderOptions } from "./policy-reloader.ts";

const text = (limit: number): string =>
  `policies: [{ id: p, limits: [{ windows: [${limit}/h] }], on_failure: open }]\n`;
const createFiles = (content: string): PolicyFiles => ({ files: [{ file: "p.yaml", text: content }], digest: content });

let folder: string;
let reloader: PolicyReloader | undefined;
let used: number[];
let reloads: boolean[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-reloader-"));
  used = [];
  reloads = [];
});

afterEach(async () => {
  reloader?.close();
  await rm(folder, { recursive: true, force: true });
});

/** A reloader of a folder that stays empty: `read` stands for the disk. */
async function create(
  read: () => Promise<PolicyFiles>,
  options: Partial<PolicyReloaderOptions> = {},
): Promise<PolicyReloader> {
  reloader = await createPolicyReloader({
    path: folder,
    loaded: { ...parseServedPolicies([{ text: text(1) }]), digest: text(1) },
    limiter: {
      usePolicies(policySet) {
        const { policies } = policySet as ReturnType<typeof parseServedPolicies>["policySet"];
        used.push(policies[0]!.limits[0]!.windows[0]!.limit);
        return { generation: used.length + 1, policySet: policySet as never };
      },
    },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    metrics: { countReload: (successful) => reloads.push(successful) },
    watch: { quietMs: 1, pollMs: 3_600_000 },
    read,
    ...options,
  });
  return reloader;
}

/** Reads one content after the other; the last one stays. */
function inTurn(...contents: string[]): () => Promise<PolicyFiles> {
  return async () => createFiles(contents.length > 1 ? contents.shift()! : contents[0]!);
}

describe("reloading", () => {
  it.each(["", "policies: [{ id: p, lim"])(
    "does not take a file caught half-written for a bad one: %j",
    async (half) => {
      const created = await create(inTurn(text(1), half, text(7)));
      await created.reload();
      expect(used).toEqual([7]);
      expect(reloads).toEqual([true]);
      expect(created.status.state).toBe("current");
    },
  );

  it("says that a file is bad once it stays so, and once only", async () => {
    const created = await create(inTurn(text(1), "[", "[", "["));
    await created.reload();
    await created.reload();
    expect(reloads).toEqual([false]);
    expect(reloader?.status.state).toBe("stale");
  });

  it("says nothing of a bad file that is put back meanwhile", async () => {
    const created = await create(inTurn(text(1), "[", text(1)));
    await created.reload();
    expect(reloads).toEqual([]);
  });

  it("is stale while the file system does not answer, and applies what it returns in the end", async () => {
    let answer = (_files: PolicyFiles): void => {};
    let reads = 0;
    const created = await create(
      () => {
        reads++;
        if (reads === 1) return Promise.resolve(createFiles(text(1)));
        if (reads === 2) return new Promise((resolve) => (answer = resolve));
        return Promise.resolve(createFiles(text(7)));
      },
      { readWithinMs: 1 },
    );
    await created.reload();
    await created.reload();
    expect(reads).toBe(2);
    expect(reloader?.status).toMatchObject({
      state: "stale",
      problems: [{ message: "cannot be read: the file system does not answer" }],
    });
    answer(createFiles(text(1)));
    await expect.poll(() => used).toEqual([7]);
    expect(reloader?.status.state).toBe("current");
  });
});
