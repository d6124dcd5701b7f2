import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GetUsageRequest, RateLimiterDefinition } from "@sluice/protocol";
import { openPolicyStore, type UsageRow } from "@sluice/sql";
import { startServer } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import { connectForTest } from "../testing/grpc-client.ts";
import { silentLog } from "../testing/test-service.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

let folder: string;
let daemons: Daemon[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-usage-"));
  daemons = [];
});

afterEach(async () => {
  for (const daemon of daemons) await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

const storeUrl = (): string => `sqlite:${join(folder, "store.db")}`;

async function start(
  env: Readonly<Record<string, string>> = {},
  ports: Readonly<Record<string, string>> = {},
): Promise<Daemon> {
  const config = join(folder, "policies.yaml");
  await writeFile(config, "policies: [{ id: api, limits: [{ by: [user], windows: [5/h] }], on_failure: open }]\n");
  const reading = parseSettings(
    { RATE_LIMIT_CONFIG: config, SLUICE_STORE_URL: storeUrl(), SLUICE_DEADLINE: "10s", ...env },
    { httpPort: "0", grpcPort: "off", adminPort: "off", ...ports },
  );
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const daemon = await startDaemon({ settings: reading.settings, log: silentLog });
  daemons.push(daemon);
  return daemon;
}

async function check({ url }: Daemon, tenant: string, user: string, times: number): Promise<void> {
  const checks = Array.from({ length: times }, () => ({ dimensions: { tenant, user } }));
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${url}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
  expect(response.status).toBe(200);
  await response.text();
}

/** What is stored, in total and by tenant. */
async function readUsage(): Promise<readonly (readonly [string | undefined, number, number, number])[]> {
  const store = await openPolicyStore({ url: storeUrl() });
  const all = { step: "minute", fromMs: 0, toMs: 2 ** 45, atMost: 1_000 } as const;
  const rows = await store.read(async (view) => [
    ...(await view.usage({ ...all, by: [] })),
    ...(await view.usage({ ...all, by: ["subject"], dimension: "tenant" })),
  ]);
  await store.close();
  const sums = new Map<string | undefined, [number, number, number]>();
  for (const { subject, decided, denied, cost } of rows as readonly UsageRow[]) {
    const [a, b, c] = sums.get(subject) ?? [0, 0, 0];
    sums.set(subject, [a + decided, b + denied, c + cost]);
  }
  return [...sums].map(([subject, counts]) => [subject, ...counts] as const);
}

describe("the usage history of a server", () => {
  it("has every decision once the server has stopped, and goes on after a restart", async () => {
    const first = await start();
    await check(first, "acme", "u1", 7);
    await check(first, "globex", "u2", 3);
    await first.close();
    const second = await start();
    await check(second, "acme", "u3", 2);
    await second.close();
    expect(await readUsage()).toEqual([
      [undefined, 12, 2, 10],
      ["acme", 9, 2, 7],
      ["globex", 3, 0, 3],
    ]);
  });

  it("has decisions by leases as well", async () => {
    const valkey = await startServer({ flavor: "valkey" });
    const server = await start({ SLUICE_REDIS_URL: valkey.url, SLUICE_LEASES: "on" });
    for (let i = 0; i < 5; i++) await check(server, "acme", `u${i}`, 4);
    await server.close();
    await valkey.close();
    expect(await readUsage()).toEqual([
      [undefined, 20, 0, 20],
      ["acme", 20, 0, 20],
    ]);
  });

  it("is reported by GetUsage, for the dimensions that it is kept by", async () => {
    const env = { SLUICE_USAGE_BY: "user", SLUICE_ADMIN_TOKEN_FILE: join(folder, "token") };
    const first = await start(env);
    await check(first, "acme", "u1", 7);
    await first.close();
    const second = await start(env, { grpcPort: "0", adminPort: "0" });
    const client = connectForTest(new URL(second.addresses.grpc[0]!).host);
    const dimensions = { tenant: "acme", user: "u1" };
    const fromUnixMs = Date.now() - 3 * 3_600_000;
    const request = GetUsageRequest.fromPartial({ policyId: "api", dimensions, fromUnixMs });
    const options = { token: second.firstToken!.token };
    const usage = await client.call(RateLimiterDefinition, "getUsage", request, options);
    client.close();
    expect(usage).toMatchObject({
      quotas: [{ policyId: "api", window: "5/h", used: 0 }],
      sums: [{ policyId: "api", dimension: "user", subject: "u1", decided: 7, allowed: 5, denied: 2, cost: 5 }],
    });
  });

  it("is not kept if it is off", async () => {
    const server = await start({ SLUICE_USAGE_BY: "off" });
    await check(server, "acme", "u1", 3);
    await server.close();
    expect(await readUsage()).toEqual([]);
  });
});
