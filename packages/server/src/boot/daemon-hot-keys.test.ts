import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer, type TestServer } from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import { silentLog } from "../testing/test-service.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

const patience = { timeout: 30_000, interval: 20 };

let folder: string;
let daemon: Daemon | undefined;
let valkey: TestServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-hot-keys-"));
  valkey = await startServer({ flavor: "valkey" });
});
afterEach(async () => {
  await daemon?.close();
  daemon = undefined;
});
afterAll(async () => {
  await valkey.close();
  await rm(folder, { recursive: true, force: true });
});

/** A server that allows each user 500 an hour. */
async function start(env: Readonly<Record<string, string>> = {}): Promise<Daemon> {
  const config = join(folder, "policies.yaml");
  await writeFile(config, "policies: [{ id: api, limits: [{ by: [user], windows: [500/h] }], on_failure: open }]\n");
  const reading = parseSettings(
    { RATE_LIMIT_CONFIG: config, SLUICE_DEADLINE: "10s", ...env },
    { httpPort: "0", grpcPort: "off" },
  );
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  daemon = await startDaemon({ settings: reading.settings, log: silentLog });
  return daemon;
}

async function ask({ url }: Daemon, user: string, times: number): Promise<void> {
  const checks = Array.from({ length: times }, () => ({ dimensions: { user } }));
  const headers = { "content-type": "application/json", authorization: "Bearer check-token" };
  const response = await fetch(`${url}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
  expect(response.status).toBe(200);
  await response.text();
}

interface Body {
  readonly items: { subject: string; per_second: number; denied_per_second: number; error_per_second: number }[];
  readonly hashed: boolean;
  readonly nodes: unknown;
}

async function hotKeys({ url }: Daemon, query = "", token?: string): Promise<Body> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/v1/hot-keys${query}`, { headers });
  expect(response.status).toBe(200);
  return (await response.json()) as Body;
}

const fetchMetrics = async ({ url }: Daemon): Promise<string> => (await fetch(`${url}/metrics`)).text();

/** Labels and values of the series of a metric. */
function parseSeries(page: string, name: string): [subject: string, value: number][] {
  const lines = page.matchAll(new RegExp(`^${name}\\{policy="api",scope="user",subject="(.*)"\\} (\\S+)$`, "gm"));
  return [...lines].map(([, subject, value]) => [subject!, Number(value)]);
}

const rates = "sluice_hot_key_decisions_per_second";
const denials = "sluice_hot_key_denials_per_second";

describe("a server without a policy store", () => {
  it("are shown by hash to callers without a token", async () => {
    const server = await start();
    await ask(server, "whale", 1_000);
    await ask(server, "minnow", 450);
    const { items, hashed, nodes } = await hotKeys(server, "?by=rate&count=5");
    expect([items.length, hashed, nodes]).toEqual([2, true, { reported: 1, oldest_ms: 0 }]);
    for (const { subject } of items) expect(subject).toMatch(/^#[0-9a-f]{12}$/);
    expect(items[0]!.per_second).toBeGreaterThan(items[1]!.per_second);
    expect(items[0]!.denied_per_second).toBeGreaterThan(0);
    // The same ones the next time, and no hash that a caller could compute.
    expect((await hotKeys(server)).items.map(({ subject }) => subject)).toEqual(items.map(({ subject }) => subject));
    const plain = createHash("sha256").update("whale").digest("hex").slice(0, 12);
    expect(items[0]!.subject).not.toBe(`#${plain}`);
    expect((await hotKeys(server, "?by=denials")).items.map(({ subject }) => subject)).toEqual([items[0]!.subject]);
  });

  it("are shown to callers whose token may read", async () => {
    const tokens = join(folder, "tokens.yaml");
    const entry = (name: string, role: string): object => ({
      ...{ name, role, sha256: createHash("sha256").update(`${name}-token`).digest("hex") },
    });
    await writeFile(tokens, JSON.stringify({ tokens: [entry("check", "check"), entry("viewer", "viewer")] }), {
      mode: 0o600,
    });
    const server = await start({ SLUICE_TOKENS: tokens });
    await ask(server, "whale", 1_000);
    const { items, hashed } = await hotKeys(server, "", "viewer-token");
    expect([items.map(({ subject }) => subject), hashed]).toEqual([["whale"], false]);
    for (const token of ["check-token", undefined]) {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const { status } = await fetch(`${server.url}/v1/hot-keys`, { headers });
      expect(status).toBe(token === undefined ? 401 : 403);
    }
  });

  it("refuses unknown parameters, and names them", async () => {
    const server = await start();
    const response = await fetch(`${server.url}/v1/hot-keys?by=name&count=0&node=x`);
    expect(response.status).toBe(400);
    const { problems } = (await response.json()) as { problems: { field: string }[] };
    expect(problems.map(({ field }) => field)).toEqual(["by", "count", "node"]);
  });

  it.each(["on", "off"])("include counters on servers, with leases %s", async (leases) => {
    const server = await start({ SLUICE_REDIS_URL: valkey.url, SLUICE_LEASES: leases });
    await expect.poll(async () => (await fetch(`${server.url}/readyz?strict`)).status, patience).toBe(200);
    await ask(server, `whale ${leases}`, 1_000);
    const { items } = await hotKeys(server);
    expect(items).toHaveLength(1);
    expect(items[0]!.per_second).toBeGreaterThan(0);
    expect(items[0]!.denied_per_second).toBeGreaterThan(0);
  });
});

describe("metrics of hot keys", () => {
  it("are absent unless they are asked for", async () => {
    const server = await start();
    await ask(server, "whale", 1_000);
    expect(await fetchMetrics(server)).not.toContain("sluice_hot_key");
  });

  it("are bounded, whatever the number of subjects", async () => {
    const server = await start({ SLUICE_HOT_KEY_METRICS: "2" });
    const shark = 'a "shark"\\';
    // In turns, so that all of them are as old.
    const crowd = ["whale", "whale", "whale", "whale", shark, shark, shark, "salmon", "salmon"];
    for (let i = 0; i < 1_000; i++)
      for (const user of [...crowd, `minnow-${i % 40}`]) await server.limiter.check({ dimensions: { user } });
    const page = await fetchMetrics(server);
    expect(parseSeries(page, rates).map(([subject]) => subject)).toEqual(["whale", 'a \\"shark\\"\\\\']);
    expect(parseSeries(page, denials).map(([subject]) => subject)).toEqual(["whale", 'a \\"shark\\"\\\\']);
    for (const [, value] of parseSeries(page, rates)) expect(value).toBeGreaterThan(0);
  });

  it("have hashes in place of subjects that must not be logged", async () => {
    const server = await start({ SLUICE_HOT_KEY_METRICS: "50", SLUICE_LOG_HASH_SUBJECTS: "true" });
    await ask(server, "whale", 1_000);
    const page = await fetchMetrics(server);
    expect(page).not.toContain("whale");
    expect(parseSeries(page, rates).map(([subject]) => subject)).toEqual([expect.stringMatching(/^#[0-9a-f]{12}$/)]);
  });

  it("are at most 50", () => {
    const reading = parseSettings({ SLUICE_HOT_KEY_METRICS: "51" });
    expect(reading).toMatchObject({
      problems: [{ path: ["SLUICE_HOT_KEY_METRICS"], message: 'is "51"; it should be a whole number from 0 to 50' }],
    });
  });
});
