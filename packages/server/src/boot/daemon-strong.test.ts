import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres, startServer, type TestPostgres, type TestServer } from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import { createRecordingLog, type LoggedLine } from "../testing/recording-log.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

let postgres: TestPostgres;
let redis: TestServer;
let folder: string;
let logged: LoggedLine[];
let closing: (() => Promise<unknown>)[];

beforeAll(async () => {
  [postgres, redis] = await Promise.all([startPostgres(), startServer({ flavor: "valkey" })]);
}, 60_000);

afterAll(async () => {
  await Promise.all([postgres.close(), redis.close()]);
});

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-strong-"));
  logged = [];
  closing = [() => rm(folder, { recursive: true, force: true })];
});

afterEach(async () => {
  for (const close of closing.reverse()) await close();
});

const strong = `
policies:
  - id: plain
    limits: [{ by: [user], algorithm: fixed_window, windows: [5/d] }]
    on_failure: open
  - id: billing
    limits: [{ by: [user], algorithm: fixed_window, windows: [3/d] }]
    counters: strong
    on_failure: closed
default: none
`;

interface Body {
  readonly allowed: boolean;
  readonly policy: string;
  readonly remaining: number;
  readonly degraded?: string;
  readonly limits: readonly { readonly policy: string; readonly remaining: number }[];
}

interface Started extends Daemon {
  check(user: string, more?: Record<string, unknown>): Promise<Body>;
  text(path: string): Promise<string>;
}

async function start(env: Record<string, string>, text = strong): Promise<Started> {
  const file = join(folder, "policies.yaml");
  await writeFile(file, text);
  const reading = parseSettings(
    { SLUICE_DEADLINE: "5s", SLUICE_STRONG_DEADLINE: "5s", ...env },
    { httpPort: "0", grpcPort: "off", adminPort: "off", config: file },
  );
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const daemon = await startDaemon({
    settings: reading.settings,
    log: createRecordingLog((line) => logged.push(line)),
  });
  closing.push(() => daemon.close());
  return Object.assign(daemon, {
    async check(user: string, more = {}): Promise<Body> {
      const response = await fetch(`${daemon.url}/v1/check`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ dimensions: { user }, details: true, ...more }),
      });
      return (await response.json()) as Body;
    },
    text: async (path: string) => (await fetch(daemon.url + path)).text(),
  });
}

function left({ limits }: Body): readonly (readonly [string, number])[] {
  return limits.map(({ policy, remaining }) => [policy, remaining] as const);
}

describe("a server with strong policies", () => {
  it("counts them in its database and the rest on Redis, all or nothing, and keeps them through restarts", async () => {
    const env = { SLUICE_REDIS_URL: redis.url, SLUICE_STRONG_COUNTERS_URL: await postgres.createDatabase() };
    const nodes = [await start(env), await start(env)];
    const answers = await Promise.all([0, 1, 0, 1, 0].map((node) => nodes[node]!.check("ada")));
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(3);
    expect(left(await nodes[0]!.check("ada", { preview: true }))).toEqual([
      ["plain", 2],
      ["billing", 0],
    ]);
    for (const node of nodes) await node.close();
    const later = await start(env);
    const denied = await later.check("ada");
    expect([denied.allowed, denied.policy]).toEqual([false, "billing"]);
    const explained = await fetch(`${later.url}/v1/explain`, {
      method: "POST",
      body: JSON.stringify({ dimensions: { user: "ada" } }),
      headers: { accept: "text/plain", "content-type": "application/json" },
    });
    expect(await explained.text()).toContain("exactly, in the database of strong counters");
    expect(JSON.parse(await later.text("/v1/status")).strong).toMatchObject({
      ...{ at: env.SLUICE_STRONG_COUNTERS_URL.replace(/\/\/.*@/, "//"), breaker: "closed", failed_transactions: 0 },
    });
    expect(await later.text("/metrics")).toMatch(/^sluice_strong_calls_total [1-9]/m);
  });

  it("counts them in the policy store's database, with counters in memory, if no other is named", async () => {
    const url = `sqlite:${join(folder, "store.db")}`;
    const server = await start({ SLUICE_STORE_URL: url });
    expect(left(await server.check("ada"))).toEqual([
      ["plain", 4],
      ["billing", 2],
    ]);
    await server.close();
    const again = await start({ SLUICE_STORE_URL: url });
    expect(left(await again.check("ada"))).toEqual([
      ["plain", 4],
      ["billing", 1],
    ]);
  });

  it("does not start without a database, and names the policy and the field", async () => {
    await expect(start({})).rejects.toMatchObject({
      code: "invalid_policies",
      problems: [expect.objectContaining({ path: ["policies", 1, "counters"] })],
    });
  });

  it("refuses files that bring one without a database, and goes on with the last good ones", async () => {
    const server = await start({}, strong.replace("counters: strong", "counters: exact"));
    await writeFile(join(folder, "policies.yaml"), strong);
    await server.reload();
    expect((await server.check("ada")).remaining).toBe(2);
    expect(await server.text("/v1/status")).toContain("policy billing is strong");
  });

  it("answers by on_failure while the database is gone, says that it is degraded, and recovers", async () => {
    const fragile = await startPostgres();
    closing.push(() => fragile.close());
    const server = await start({ SLUICE_STRONG_COUNTERS_URL: fragile.url, SLUICE_STRONG_DEADLINE: "300ms" });
    // Until the database is open and has its tables, on_failure answers as well.
    await expect.poll(async () => (await server.check("bob")).allowed).toBe(true);
    expect((await server.check("ada")).allowed).toBe(true);
    await fragile.stop("SIGKILL");
    // What a killed server leaves behind may answer for a moment.
    await expect.poll(async () => (await server.check("eve")).allowed).toBe(false);
    for (let i = 0; i < 6; i += 1) expect((await server.check("carol")).allowed).toBe(false);
    expect(logged.some(({ event }) => event === "strong.breaker_opened")).toBe(true);
    expect(await server.text("/readyz")).toContain("counters_unavailable");
    // Nothing of what was denied was charged to the others.
    expect((await server.check("carol", { policies: ["plain"], preview: true })).remaining).toBe(5);
    await fragile.start();
    await expect.poll(() => server.text("/readyz"), { timeout: 20_000 }).not.toContain("counters_unavailable");
    expect((await server.check("ada")).remaining).toBe(1);
  }, 60_000);
});
