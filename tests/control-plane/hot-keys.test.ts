import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startPostgres, type TestPostgres } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Sluice } from "../restart/start-sluice.ts";
import { createFleet, type Fleet, patience, steer, steerWell, twoPolicies, untilAll } from "./fleet.ts";

const main = fileURLToPath(new URL("../../packages/cli/src/main.ts", import.meta.url));

interface HotKeys {
  readonly items: readonly {
    readonly policy: string;
    readonly subject: string;
    readonly per_second: number;
    readonly denied_per_second: number;
    readonly nodes: number;
  }[];
  readonly total: { readonly per_second: number };
  readonly nodes: { readonly reported: number; readonly silent: number; readonly oldest_ms: number };
}

let postgres: TestPostgres;
let fleet: Fleet;
let one: Sluice;
let two: Sluice;

beforeAll(async () => {
  postgres = await startPostgres();
  fleet = await createFleet({ SLUICE_STORE_URL: postgres.url });
  [one, two] = await Promise.all([fleet.start("one"), fleet.start("two")]);
  await steerWell(one, fleet, "POST", "/import", twoPolicies(50));
  await untilAll([one, two], { limit: 50 });
}, 180_000);

afterAll(async () => {
  await fleet?.close();
  await postgres?.close();
});

async function ask({ http }: Sluice, user: string, times: number): Promise<void> {
  const checks = Array.from({ length: times }, () => ({ dimensions: { user, endpoint: "/p" } }));
  const headers = { "content-type": "application/json" };
  await fetch(`${http}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
}

/** One user on both nodes, and one on each of them alone. Hot keys cool down, so traffic continues. */
async function traffic(): Promise<void> {
  await ask(one, "both", 400);
  await ask(two, "both", 200);
  await ask(one, "first", 40);
  await ask(two, "second", 40);
}

async function hotKeys(node: Sluice, query = ""): Promise<HotKeys> {
  return (await steerWell(node, fleet, "GET", `/hot-keys${query}`)) as unknown as HotKeys;
}

describe("hot keys of two nodes on one store", () => {
  it("are merged by either node, with the counts of both", async () => {
    for (const node of [one, two])
      await vi.waitFor(async () => {
        await traffic();
        const { items, nodes, total } = await hotKeys(node);
        const told = new Map(items.map((item) => [item.subject, item]));
        expect(told.get("both")).toMatchObject({ policy: "p", nodes: 2 });
        expect(told.get("first")).toMatchObject({ nodes: 1 });
        expect(told.get("second")).toMatchObject({ nodes: 1 });
        expect(items[0]!.subject).toBe("both");
        expect(nodes).toMatchObject({ reported: 2, silent: 0 });
        const sum = items.reduce((all, item) => all + item.per_second, 0);
        expect(total.per_second).toBeGreaterThan(sum * 0.99);
        // Nodes report every five seconds, and are alive for fifteen.
        expect(nodes.oldest_ms).toBeLessThan(15_000);
      }, patience);
  }, 120_000);

  it("ordered by denials are those refused on both", async () => {
    await vi.waitFor(async () => {
      await traffic();
      const { items } = await hotKeys(two, "?by=denials&count=1");
      expect(items).toMatchObject([{ subject: "both", nodes: 2 }]);
      expect(items[0]!.denied_per_second).toBeGreaterThan(0);
    }, patience);
  }, 120_000);

  it("are those of one node if it is named, whichever node is asked", async () => {
    await vi.waitFor(async () => {
      await traffic();
      for (const node of [one, two]) {
        const { items, nodes } = await hotKeys(node, "?node=two");
        const subjects = items.map(({ subject }) => subject);
        expect(subjects).toContain("second");
        expect(subjects).not.toContain("first");
        expect(nodes.reported).toBe(1);
      }
    }, patience);
    expect(await steer(one, fleet, "GET", "/hot-keys?node=three")).toMatchObject({
      status: 404,
      body: { code: "resource_not_found" },
    });
  }, 120_000);

  it("are shown by sluice top", async () => {
    let isRunning = true;
    const printed = promisify(execFile)(
      process.execPath,
      ["-C", "source", main, "top", "--admin", one.admin, "--token-file", join(fleet.folder, "admin-token")],
      { env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: join(fleet.folder, "compiled") } },
    ).finally(() => {
      isRunning = false;
    });
    // A process takes a while to start, and traffic continues meanwhile.
    while (isRunning) await Promise.all([traffic(), sleep(100)]);
    const { stdout } = await printed;
    expect(stdout).toMatch(/^2 nodes.*: \d.* decisions a second/);
    expect(stdout).toMatch(/^policy +scope +subject +per second +denied\/s +share$/m);
    expect(stdout).toMatch(/^p +user +both +~?[\d.]+ /m);
  }, 120_000);

  it("are not in the list of nodes", async () => {
    const { nodes } = (await steerWell(one, fleet, "GET", "/nodes")) as { nodes: { details: object }[] };
    expect(nodes).toHaveLength(2);
    for (const { details } of nodes) expect(Object.keys(details)).not.toContain("hot_keys");
  });
});
