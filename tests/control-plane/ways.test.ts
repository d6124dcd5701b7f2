import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startPostgres, startServer, type TestPostgres, type TestServer } from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { Sluice } from "../restart/start-sluice.ts";
import {
  createFleet,
  createPolicyDocument,
  decide,
  type Fleet,
  patience,
  readStatus,
  steerWell,
  twoPolicies,
  untilAll,
} from "./fleet.ts";

let postgres: TestPostgres;
let valkey: TestServer;
let fleet: Fleet;

beforeAll(async () => {
  [postgres, valkey] = await Promise.all([startPostgres(), startServer({ flavor: "valkey" })]);
}, 60_000);
afterEach(() => fleet?.close());
afterAll(async () => {
  await Promise.all([postgres?.close(), valkey?.close()]);
});

/** Resolves when a change and the kill switch have reached all nodes. */
async function playThrough(nodes: readonly Sluice[]): Promise<void> {
  const [first] = nodes;
  await steerWell(first!, fleet, "POST", "/import", twoPolicies(1));
  await untilAll(nodes, { limit: 1 });
  await steerWell(first!, fleet, "POST", "/import", twoPolicies(2));
  await untilAll(nodes, { limit: 2 });
  await steerWell(first!, fleet, "PUT", "/kill-switch", { mode: "closed", for_ms: 3_600_000, why: "a drill" });
  await untilAll(nodes, { allowed: false, degraded: "kill_switch" });
  await steerWell(first!, fleet, "DELETE", "/kill-switch?why=over");
  await untilAll(nodes, { allowed: true });
}

async function readMetric({ http }: Sluice, name: string): Promise<number> {
  const page = await (await fetch(`${http}/metrics`)).text();
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(page)?.[1]);
}

describe("changes reach every node", () => {
  it("that only polls", async () => {
    const url = await postgres.createDatabase();
    fleet = await createFleet({ SLUICE_STORE_URL: url, SLUICE_REDIS_URL: valkey.url, SLUICE_PUSH: "none" });
    const nodes = await Promise.all([fleet.start("one"), fleet.start("two")]);
    await playThrough(nodes);
    expect(await readMetric(nodes[1]!, "sluice_store_found_by_looking_total")).toBeGreaterThan(0);
    expect(await readMetric(nodes[1]!, "sluice_store_pushes_total")).toBe(0);
    expect(await readMetric(nodes[1]!, "sluice_store_take_up_seconds_count")).toBeGreaterThan(0);
  }, 120_000);

  it("by Valkey, if the store is a file", async () => {
    fleet = await createFleet({ SLUICE_REDIS_URL: valkey.url, SLUICE_REDIS_PREFIX: "file" });
    const store = ["--store", `sqlite:${join(fleet.folder, "store.db")}`];
    const nodes = [await fleet.start("one", ...store), await fleet.start("two", ...store)];
    await vi.waitFor(async () => {
      for (const node of nodes) expect((await readStatus(node)).store.push).toEqual({ kind: "redis", connected: true });
    }, patience);
    await playThrough(nodes);
    expect(await readMetric(nodes[1]!, "sluice_store_pushes_total")).toBeGreaterThan(0);
  }, 120_000);

  it("that shares nothing with the others but a file", async () => {
    fleet = await createFleet({ SLUICE_PUSH: "auto" });
    const store = ["--store", `sqlite:${join(fleet.folder, "store.db")}`];
    const nodes = [await fleet.start("one", ...store), await fleet.start("two", ...store)];
    expect((await readStatus(nodes[1]!)).store.push).toEqual({ kind: "process", connected: true });
    await playThrough(nodes);
    expect(await readMetric(nodes[1]!, "sluice_store_found_by_looking_total")).toBeGreaterThan(0);
  }, 120_000);

  it("of several workers, each of which is a node", async () => {
    const url = await postgres.createDatabase();
    fleet = await createFleet({ SLUICE_STORE_URL: url, SLUICE_REDIS_URL: valkey.url, SLUICE_REDIS_PREFIX: "workers" });
    const server = await fleet.start("one", "--workers", "2");
    await vi.waitFor(async () => {
      const { nodes } = (await steerWell(server, fleet, "GET", "/nodes")) as {
        nodes: { details: { worker: number } }[];
      };
      expect(nodes.map(({ details }) => details.worker).toSorted()).toEqual([1, 2]);
    }, patience);
    await steerWell(server, fleet, "POST", "/import", twoPolicies(1));
    await vi.waitFor(async () => {
      const { generation, nodes } = (await steerWell(server, fleet, "GET", "/nodes")) as {
        generation: number;
        nodes: { generation: number }[];
      };
      expect(nodes.map((node) => node.generation)).toEqual([generation, generation]);
    }, patience);
    for (let i = 0; i < 20; i++) expect(await decide(server)).toMatchObject({ limit: 1 });
    await steerWell(server, fleet, "PUT", "/kill-switch", { mode: "closed", for_ms: 3_600_000, why: "a drill" });
    await vi.waitFor(async () => {
      const { nodes } = (await steerWell(server, fleet, "GET", "/nodes")) as {
        nodes: { details: { kill_switch?: string } }[];
      };
      expect(nodes.map(({ details }) => details.kill_switch)).toEqual(["closed", "closed"]);
    }, patience);
    for (let i = 0; i < 20; i++) expect(await decide(server)).toMatchObject({ allowed: false });
  }, 120_000);
});

describe("policies of files and of the store", () => {
  it.each([
    ["files", 5],
    ["store", 7],
  ])(
    "are in force together, and if both have one %s win, which is logged",
    async (precedence, limit) => {
      const url = await postgres.createDatabase();
      fleet = await createFleet({ SLUICE_STORE_URL: url, SLUICE_REDIS_URL: valkey.url });
      const config = join(fleet.folder, "policies.yaml");
      await writeFile(
        config,
        JSON.stringify({ policies: [createPolicyDocument("p", 5), createPolicyDocument("f", 5)] }),
      );
      const node = await fleet.start("one", "--config", config, "--policy-precedence", precedence);
      await steerWell(node, fleet, "POST", "/import", twoPolicies(7));
      await untilAll([node], { limit: 7 }, "q");
      expect(await decide(node, "p")).toMatchObject({ limit });
      expect(await decide(node, "f")).toMatchObject({ limit: 5 });
      expect((await readStatus(node)).store).toMatchObject({ precedence, overridden: ["policy p"] });
      expect(node.log.match(/policy files and the policy store both define these/g)).toHaveLength(1);
      const { overridden_by: by } = await steerWell(node, fleet, "GET", "/policies/p");
      expect(by).toBe(precedence === "files" ? "file" : undefined);
      // A change of the files does not affect the store's policies.
      await writeFile(config, JSON.stringify({ policies: [createPolicyDocument("f", 6)] }));
      await untilAll([node], { limit: 6 }, "f");
      expect(await decide(node, "p")).toMatchObject({ limit: 7 });
    },
    120_000,
  );

  it("begin with a seed, which one of several nodes sows, and only into an empty store", async () => {
    const url = await postgres.createDatabase();
    fleet = await createFleet({ SLUICE_STORE_URL: url, SLUICE_REDIS_URL: valkey.url });
    const seed = join(fleet.folder, "seed.yaml");
    await writeFile(seed, twoPolicies(9));
    const nodes = await Promise.all(["one", "two", "three"].map((name) => fleet.start(name, "--seed", seed)));
    await untilAll(nodes, { limit: 9 });
    expect(nodes.filter(({ log }) => log.includes("policy store seeded"))).toHaveLength(1);
    expect(nodes.filter(({ log }) => log.includes("the first admin token was created"))).toHaveLength(1);
    await steerWell(nodes[0]!, fleet, "POST", "/import", twoPolicies(10));
    await nodes[1]!.stop();
    const again = await fleet.start("two", "--seed", seed);
    await untilAll([again], { limit: 10 });
  }, 120_000);
});
