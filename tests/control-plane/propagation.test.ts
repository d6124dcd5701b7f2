import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres, startServer, type TestPostgres, type TestServer } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Sluice } from "../restart/start-sluice.ts";
import {
  createFleet,
  createPolicyDocument,
  decide,
  type Fleet,
  limitsOn,
  patience,
  readStatus,
  steer,
  steerWell,
  twoPolicies,
  untilAll,
} from "./fleet.ts";

let postgres: TestPostgres;
let valkey: TestServer;
let fleet: Fleet;
let nodes: [Sluice, Sluice, Sluice];

beforeAll(async () => {
  [postgres, valkey] = await Promise.all([startPostgres(), startServer({ flavor: "valkey" })]);
  fleet = await createFleet({ SLUICE_STORE_URL: postgres.url, SLUICE_REDIS_URL: valkey.url });
  // All at once: they create one schema and one token.
  nodes = await Promise.all([fleet.start("one"), fleet.start("two"), fleet.start("three")]);
  await steerWell(nodes[0], fleet, "POST", "/import", twoPolicies(1));
  await untilAll(nodes, { limit: 1 });
}, 180_000);

afterAll(async () => {
  await fleet?.close();
  await Promise.all([postgres?.close(), valkey?.close()]);
});

async function putLimit(node: Sluice, limit: number): Promise<void> {
  const { version } = await steerWell(node, fleet, "GET", "/policies/p");
  await steerWell(node, fleet, "PUT", "/policies/p", {
    document: createPolicyDocument("p", limit),
    expected_version: version,
  });
}

describe("a change made on one node", () => {
  it("applies on all nodes, and nodes say so", async () => {
    for (const [index, node] of nodes.entries()) {
      await putLimit(node, 10 + index);
      await untilAll(nodes, { limit: 10 + index });
    }
    await vi.waitFor(async () => {
      const { generation, nodes: known } = (await steerWell(nodes[1], fleet, "GET", "/nodes")) as {
        generation: number;
        nodes: { name: string; generation: number; current: boolean; alive: boolean }[];
      };
      expect(known.map(({ name }) => name).toSorted()).toEqual(["one", "three", "two"]);
      for (const node of known) expect(node).toMatchObject({ generation, current: true, alive: true });
    }, patience);
  });

  it("applies on all nodes even without a notification", async () => {
    await postgres.psql(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sluice listen'",
    );
    await putLimit(nodes[0], 20);
    await untilAll(nodes, { limit: 20 });
    await vi.waitFor(async () => {
      for (const node of nodes)
        expect((await readStatus(node)).store.push).toEqual({ kind: "postgres", connected: true });
    }, patience);
  });

  it("is refused on another that had not seen it, and nothing is lost", async () => {
    const { version } = await steerWell(nodes[0], fleet, "GET", "/policies/p");
    const answers = await Promise.all(
      nodes.map((node, index) =>
        steer(node, fleet, "PUT", "/policies/p", {
          document: createPolicyDocument("p", 30 + index),
          expected_version: version,
        }),
      ),
    );
    const won = answers.findIndex(({ status }) => status === 200);
    const lost = answers.filter((_, index) => index !== won);
    expect(lost.map(({ status, body }) => [status, body.code, body.current_version])).toEqual(
      lost.map(() => [409, "version_conflict", Number(version) + 1]),
    );
    await untilAll(nodes, { limit: 30 + won });
  });

  it("is never applied in part, and a node that missed many reaches the newest", async () => {
    const [first, second, third] = nodes;
    await steerWell(first, fleet, "POST", "/import", twoPolicies(99));
    await untilAll(nodes, { limit: 99 });
    process.kill(third.pid, "SIGSTOP");
    const seen: Record<string, number>[] = [];
    try {
      for (let limit = 100; limit < 130; limit++) {
        await steerWell(first, fleet, "POST", "/import", twoPolicies(limit));
        seen.push(await limitsOn(second));
      }
    } finally {
      process.kill(third.pid, "SIGCONT");
    }
    await vi.waitFor(async () => {
      seen.push(await limitsOn(third));
      expect(seen.at(-1)).toEqual({ p: 129, q: 129 });
    }, patience);
    for (const { p, q } of seen) expect(p).toBe(q);
    await untilAll(nodes, { limit: 129 }, "q");
  }, 120_000);
});

describe("an override", () => {
  it("is in force on all nodes, and ends on each on time", async () => {
    const untilMs = Date.now() + 6_000;
    const override = { policy: "p", windows: ["77/h"], until_ms: untilMs, why: "a launch" };
    await steerWell(nodes[0], fleet, "PUT", "/subjects/user/launch/override", override);
    await vi.waitFor(async () => {
      for (const node of nodes) expect((await decide(node, "p", "launch")).limit).toBe(77);
    }, patience);
    for (let over = false; !over; await sleep(5)) {
      for (const node of nodes) {
        const askedMs = Date.now();
        const { limit } = await decide(node, "p", "launch");
        if (Date.now() < untilMs) expect(limit).toBe(77);
        if (askedMs >= untilMs) expect(limit).toBe(129);
        over = askedMs >= untilMs;
      }
    }
  });
});

describe("the kill switch", () => {
  it.each([
    ["closed", false],
    ["open", true],
  ])("%s is in force on all nodes, and off again", async (mode, allowed) => {
    await steerWell(nodes[0], fleet, "PUT", "/kill-switch", { mode, for_ms: 3_600_000, why: "a drill" });
    await untilAll(nodes, { allowed, degraded: "kill_switch" });
    expect((await readStatus(nodes[2])).store.kill_switch).toMatchObject({ mode, reason: "a drill" });
    await steerWell(nodes[1], fleet, "DELETE", "/kill-switch?why=over");
    await untilAll(nodes, { allowed: true, reason: "within_limits" });
  });
});

describe("a rollout", () => {
  it("is started by one node, decided alike by all, and counted by each", async () => {
    const { version } = await steerWell(nodes[0], fleet, "GET", "/policies/q");
    const steps = [
      { percent: 50, hold_ms: 0 },
      { percent: 100, hold_ms: 0 },
    ];
    await steerWell(nodes[0], fleet, "PUT", "/policies/q", {
      document: createPolicyDocument("q", 500),
      expected_version: version,
      rollout: { by: "user", steps, observe_for_ms: 0 },
    });
    const users = Array.from({ length: 20 }, (_, index) => `u${index}`);
    const limitsOfUsers = async (node: Sluice): Promise<unknown[]> =>
      Promise.all(users.map(async (user) => (await decide(node, "q", user)).limit));
    await vi.waitFor(async () => {
      const [one, two, three] = await Promise.all(nodes.map(limitsOfUsers));
      expect(new Set(one)).toEqual(new Set([129, 500]));
      expect([two, three]).toEqual([one, one]);
    }, patience);
    for (const { http } of nodes) {
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ dimensions: { user: "u1", endpoint: "/q" } });
      await (await fetch(`${http}/v1/check`, { method: "POST", headers, body })).text();
    }
    await vi.waitFor(
      async () => expect((await postgres.psql("select count(distinct node) from sluice_tallies")).trim()).toBe("3"),
      patience,
    );
  }, 120_000);
});

describe("a schema that a later version upgraded", () => {
  it("keeps working for running nodes, and is refused by one that starts", async () => {
    await postgres.psql("alter table sluice_policies add column later text not null default ''");
    await postgres.psql("update sluice_schema set version = version + 1");
    try {
      await putLimit(nodes[1], 200);
      await untilAll(nodes, { limit: 200 });
      await expect(fleet.start("four")).rejects.toThrow(/has schema version \d+, and this version of Sluice knows/);
    } finally {
      await postgres.psql("update sluice_schema set version = version - 1");
    }
    const fourth = await fleet.start("four");
    await untilAll([fourth], { limit: 200 });
    expect(await fourth.stop()).toBe(0);
    const { nodes: known } = (await steerWell(nodes[0], fleet, "GET", "/nodes")) as { nodes: { name: string }[] };
    expect(known.map(({ name }) => name)).not.toContain("four");
  }, 120_000);
});

it("writes the first token to its file only", async () => {
  const file = join(fleet.folder, "admin-token");
  const token = (await readFile(file, "utf8")).trim();
  expect(token.length).toBeGreaterThan(20);
  for (const { log } of nodes) {
    expect(log).not.toContain(token);
    expect(log).not.toContain(postgres.password);
  }
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});
