import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type AdminClient, createAdminClient } from "@sluice/client/admin";
import { findFreePort, startPostgres, startServer, type TestPostgres, type TestServer } from "@sluice/test-servers";
import { type Sluice, startProgram, startSluice } from "../../restart/start-sluice.ts";
import { seedHistory } from "./seed-history.ts";
import { worldPolicies, worldTenants } from "./world-policies.ts";
import { startWorldTraffic, type WorldTraffic } from "./world-traffic.ts";

const fastRolloutsServer = fileURLToPath(new URL("../../control-plane/fast-rollouts-server.ts", import.meta.url));
const readyWithinMs = 60_000;

export const worldRoles = ["viewer", "editor", "operator", "admin"] as const;
export type WorldRole = (typeof worldRoles)[number];

export interface ConsoleWorldOptions {
  /** How many days of history are seeded. Absent: 2; 0: none. */
  readonly days?: number;
  /** How many hours of it minute by minute. Absent: 2. */
  readonly minuteHours?: number;
  /** How many servers there are. Absent: 1. */
  readonly nodes?: number;
  /** Time passes so many times as fast on the control plane, so that a rollout takes seconds. Absent: as it does. */
  readonly speed?: number;
  /** Another world, whose PostgreSQL and Valkey this one uses as well. */
  readonly within?: ConsoleWorld;
}

/** Servers with everything that the console shows: policies, subjects, tokens, a history, and traffic. */
export interface ConsoleWorld {
  /** Where a browser opens the console: the admin port of the first server. */
  readonly url: string;
  readonly nodes: readonly Sluice[];
  /** A token of each role. The editor's team is `search`. */
  readonly tokens: Readonly<Record<WorldRole, string>>;
  /** An admin, beside the browser. */
  readonly admin: AdminClient;
  readonly traffic: WorldTraffic;
  /** The URL of the policy store. */
  readonly store: string;
  readonly servers: { readonly postgres: TestPostgres; readonly valkey: TestServer };
  /** Until when there is a seeded history. */
  readonly historyMs: number;
  /** Stops the first server; `start` starts it again on the same ports. */
  stopFirst(): Promise<void>;
  startFirst(): Promise<void>;
  close(): Promise<void>;
}

export async function startConsoleWorld(options: ConsoleWorldOptions = {}): Promise<ConsoleWorld> {
  const { days = 2, minuteHours = 2, nodes: count = 1, speed, within } = options;
  const closing: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const one of closing.toReversed()) await one();
  };
  try {
    const folder = await mkdtemp(join(tmpdir(), "sluice-console-"));
    closing.push(() => rm(folder, { recursive: true, force: true }));
    const servers = within?.servers ?? (await startServers(closing));
    const store = within === undefined ? servers.postgres.url : await servers.postgres.createDatabase();
    const env = {
      SLUICE_STORE_URL: store,
      SLUICE_REDIS_URL: servers.valkey.url,
      SLUICE_ADMIN_TOKEN_FILE: join(folder, "admin-token"),
      // Most of a start is compiling, which one process can do for the others.
      NODE_COMPILE_CACHE: join(folder, "compiled"),
    };
    const start = (name: string, ports: Readonly<Record<string, string>> = {}): Promise<Sluice> =>
      startNode(
        {
          ...env,
          SLUICE_NODE_NAME: name,
          SLUICE_POLICY_SNAPSHOT: join(folder, `${name}.snapshot`),
          SLUICE_RECORDINGS: join(folder, `${name}-recordings`),
          ...ports,
        },
        speed,
      );
    // A server that is started again has the same ports, so that an open page finds it.
    const ports = { SLUICE_ADMIN_PORT: String(await findFreePort()), SLUICE_HTTP_PORT: String(await findFreePort()) };
    const nodes: Sluice[] = [];
    closing.push(() => Promise.all(nodes.map((node) => node.kill())));
    nodes.push(await start("berlin-1", ports));
    nodes.push(...(await Promise.all(Array.from({ length: count - 1 }, (_, i) => start(`berlin-${i + 2}`)))));

    const url = nodes[0]!.admin;
    const admin = createAdminClient({
      server: url,
      token: (await readFile(env.SLUICE_ADMIN_TOKEN_FILE, "utf8")).trim(),
    });
    const historyMs = Date.now();
    if (days > 0) {
      await seedStore(admin);
      await seedHistory(store, { days, minuteHours }, historyMs);
    }
    const tokens = await makeTokens(admin);
    const traffic = startWorldTraffic(() => nodes, days > 0);
    closing.push(() => traffic.stop());
    return {
      ...{ url, nodes, tokens, admin, traffic, store, servers, historyMs, close },
      async stopFirst(): Promise<void> {
        await nodes[0]!.stop();
      },
      async startFirst(): Promise<void> {
        nodes[0] = await start("berlin-1", ports);
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startServers(closing: (() => Promise<unknown>)[]): Promise<ConsoleWorld["servers"]> {
  const starting = [startPostgres(), startServer({ flavor: "valkey" })] as const;
  closing.push(() => Promise.all(starting.map(async (one) => (await one).close())));
  const [postgres, valkey] = await Promise.all(starting);
  return { postgres, valkey };
}

async function startNode(env: Readonly<Record<string, string>>, speed: number | undefined): Promise<Sluice> {
  const node =
    speed === undefined
      ? await startSluice(env)
      : await startProgram(env, fastRolloutsServer, String(Date.now()), String(speed));
  const untilMs = Date.now() + readyWithinMs;
  while (!(await node.isReady())) {
    if (Date.now() > untilMs) {
      await node.kill();
      throw new Error(`the server did not become ready:\n${node.log}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return node;
}

/** Policies, an earlier version of one, and subjects with tiers, a custom limit and an override. */
async function seedStore(admin: AdminClient): Promise<void> {
  const { generation } = await admin.configuration.plan(worldPolicies);
  await admin.configuration.import(worldPolicies, { expected: generation, why: "The policies of the shop" });
  const { document } = await admin.policies.get("checkout");
  const wider = { ...document, limits: [{ by: ["user"], windows: ["12/m"] }] };
  await admin.policies.put("checkout", wider, { expected: 1, why: "Baskets are larger in December" });
  for (const { name, tier } of worldTenants)
    if (tier !== undefined) await admin.subjects.setTier({ dimension: "tenant", value: name }, tier);
  const initech = { dimension: "tenant", value: "initech" };
  const custom = { policy: "search", windows: ["600/m"] };
  await admin.subjects.setLimit(initech, custom, { expected: "any", why: "Contract 4711" });
  const globex = { dimension: "tenant", value: "globex" };
  const sale = { policy: "api", windows: ["200/s burst 400"], forMs: 6 * 3_600_000 };
  await admin.subjects.setOverride(globex, sale, { expected: "any", why: "Their winter sale" });
}

async function makeTokens(admin: AdminClient): Promise<Record<WorldRole, string>> {
  const made = await Promise.all(
    worldRoles.map(async (role) => {
      const team = role === "editor" ? "search" : undefined;
      const { token } = await admin.tokens.make({ name: `${role}-of-the-shop`, role, team });
      return [role, token.token!] as const;
    }),
  );
  await untilNodesAreCurrent(admin);
  return Object.fromEntries(made) as Record<WorldRole, string>;
}

/** Waits until every node decides by the newest generation: then a new token is known to all. */
export async function untilNodesAreCurrent(admin: AdminClient): Promise<void> {
  const untilMs = Date.now() + readyWithinMs;
  for (;;) {
    const { generation, nodes } = await admin.nodes.list();
    const behind = nodes.filter((node) => node.alive && node.generation < generation);
    if (behind.length === 0) return;
    if (Date.now() > untilMs) throw new Error(`${behind.map(({ name }) => name).join(", ")} did not become current`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
