import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CheckBatchRequest, RateLimiterDefinition } from "@sluice/protocol";
import { startServer, type TestServer } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import { connectForTest } from "../testing/grpc-client.ts";
import { createRecordingLog } from "../testing/recording-log.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

/** A month fills up so slowly that less than a unit comes back within a test. */
const policies = `
policies:
  - { id: large, match: { endpoint: /large }, limits: [{ by: [user], windows: [{ limit: 1000000, per: 30d }] }], counters: leased, on_failure: closed }
  - { id: busy, match: { endpoint: /busy }, limits: [{ by: [user], windows: [{ limit: 1000000, per: 30d }] }], on_failure: closed }
  - { id: tight, match: { endpoint: /tight }, limits: [{ by: [user], windows: [{ limit: 10000, per: 30d }] }], on_failure: closed }
  - { id: small, match: { endpoint: /small }, limits: [{ by: [user], windows: [{ limit: 500, per: 30d }] }], on_failure: closed }
  - { id: exact, match: { endpoint: /exact }, limits: [{ by: [user], windows: [{ limit: 2000, per: 30d }] }], counters: exact, on_failure: closed }
default: none
`;
const limits = { large: 1_000_000, tight: 10_000, small: 500, exact: 2_000 };
const findAllowance = (limit: number): number => limit / 100;

let folder: string;
let redis: TestServer;
let closing: (() => Promise<unknown>)[];
/** For requests to servers that require one. */
let token: string | undefined;
let logged: { level: string; fields: Record<string, unknown>; message: string }[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-leases-"));
  closing = [() => rm(folder, { recursive: true, force: true })];
  logged = [];
  token = undefined;
  redis = await startServer({ flavor: "valkey" });
  closing.push(() => redis.close());
});

afterEach(async () => {
  for (const close of closing.reverse()) await close();
});

const log = createRecordingLog((line) => logged.push(line));
/** Leases that no test is slow enough to see the end of. */
const holding = { SLUICE_LEASE_TIME: "1m" };
const soon = { timeout: 30_000, interval: 20 };

interface Outcome {
  readonly allowed: number;
  readonly denied: number;
  readonly degraded: number;
}

interface Started extends Daemon {
  get(path: string): Promise<Record<string, unknown>>;
  /** So many checks in one request. */
  ask(endpoint: string, checks: number): Promise<Outcome>;
  /** The sum of a metric's series, or of those with these labels. */
  metric(name: string, labels?: string): Promise<number>;
  /** The same from one page, for metrics that have to agree. */
  metrics(): Promise<(name: string, labels?: string) => number>;
  leases(): Promise<{ held: number; tokens: number; stale: number; stale_for_ms?: number }>;
}

/** A server that has reached its counters. */
async function start(env: Readonly<Record<string, string>> = {}): Promise<Started> {
  const config = join(folder, "policies.yaml");
  await writeFile(config, policies);
  const reading = parseSettings(
    { SLUICE_REDIS_URL: redis.url, SLUICE_DEADLINE: "5s", ...env },
    { httpPort: "0", grpcPort: "0", config },
  );
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const daemon = await startDaemon({ settings: reading.settings, log, watch: { quietMs: 10, pollMs: 3_600_000 } });
  closing.push(() => daemon.close());
  const get: Started["get"] = async (path) =>
    (await (await fetch(daemon.url + path, { headers: authorization() })).json()) as never;
  const metrics: Started["metrics"] = async () => {
    const page = await (await fetch(`${daemon.url}/metrics`, { headers: authorization() })).text();
    const lines = page.split("\n");
    return (name, labels = "") =>
      lines
        .filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(labels))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
  };
  await expect.poll(async () => (await get("/readyz")).status, soon).toBe("ready");
  return {
    ...daemon,
    get,
    async ask(endpoint, checks): Promise<Outcome> {
      const check = { dimensions: { user: "whale", endpoint } };
      const { answers } = await post(daemon, "/v1/check", { checks: Array.from({ length: checks }, () => check) });
      return countOutcome((answers as { decision: Decided }[]).map(({ decision }) => decision));
    },
    metrics,
    metric: async (name, labels) => (await metrics())(name, labels),
    leases: async () => ((await get("/v1/status")).counters as { leases: never }).leases,
  };
}

interface Decided {
  readonly allowed: boolean;
  readonly degraded?: string;
}

function countOutcome(decisions: readonly Decided[]): Outcome {
  const degraded = decisions.filter((one) => one.degraded !== undefined && one.degraded !== "").length;
  const allowed = decisions.filter((one) => one.allowed).length;
  return { allowed, denied: decisions.length - allowed, degraded };
}

function authorization(): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

async function post({ url }: Daemon, path: string, body: object): Promise<Record<string, unknown>> {
  const headers = { "content-type": "application/json", ...authorization() };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
}

/** Asks this many checks in batches; resolves with how many were allowed. */
async function hammer(ask: (checks: number) => Promise<Outcome>, checks: number, batch: number): Promise<number> {
  let allowed = 0;
  for (let asked = 0; asked < checks; asked += batch) {
    const told = await ask(Math.min(batch, checks - asked));
    expect(told.degraded).toBe(0);
    allowed += told.allowed;
  }
  return allowed;
}

/** Over gRPC. */
function createAsker({ addresses }: Daemon): (endpoint: string, checks: number) => Promise<Outcome> {
  const client = connectForTest(addresses.grpc[0]!.replace("grpc://", ""));
  closing.push(async () => client.close());
  return async (endpoint, checks) => {
    const dimensions = { user: "whale", endpoint };
    const batch = CheckBatchRequest.fromPartial({ checks: Array.from({ length: checks }, () => ({ dimensions })) });
    const { results } = await client.call(RateLimiterDefinition, "checkBatch", batch);
    return countOutcome(results.map(({ decision }) => decision!));
  };
}

/** Asks until there is a lease with at least this much in hand. */
async function warmUp({ ask, leases }: Started, endpoint: string, tokens: number): Promise<void> {
  await expect
    .poll(async () => {
      await ask(endpoint, 100);
      return (await leases()).tokens;
    }, soon)
    .toBeGreaterThanOrEqual(tokens);
}

const messages = (): readonly string[] => logged.map(({ message }) => message);

describe("two servers with leases", () => {
  it("admit what the limit allows, and no more than the allowance beyond it", async () => {
    const [one, two] = await Promise.all([start(), start()]);
    const overGrpc = createAsker(two);
    const counts = await Promise.all([
      hammer((checks) => one.ask("/tight", checks), 3_000, 20),
      hammer((checks) => one.ask("/tight", checks), 3_000, 20),
      hammer((checks) => overGrpc("/tight", checks), 3_000, 20),
      hammer((checks) => overGrpc("/tight", checks), 3_000, 20),
    ]);
    const allowed = counts.reduce((sum, count) => sum + count, 0);
    expect(allowed).toBeLessThanOrEqual(limits.tight + findAllowance(limits.tight) + 1);
    expect(allowed).toBeGreaterThanOrEqual(limits.tight - findAllowance(limits.tight));
    for (const server of [one, two]) {
      expect(await server.metric("sluice_lease_decisions_total", 'by="lease"')).toBeGreaterThan(0);
      expect(await server.metric("sluice_lease_decisions_total")).toBe(6_000);
    }
  }, 120_000);

  it("ask the counters an order of magnitude less often, and leave an empty ledger when they stop", async () => {
    const [one, two] = await Promise.all([start(holding), start(holding)]);
    const overGrpc = createAsker(two);
    const [here, there] = await Promise.all([
      hammer((checks) => one.ask("/busy", checks), 5_000, 20),
      hammer((checks) => overGrpc("/busy", checks), 5_000, 20),
    ]);
    expect([here, there]).toEqual([5_000, 5_000]);
    for (const server of [one, two]) {
      const metric = await server.metrics();
      expect(metric("sluice_redis_questions_total")).toBeLessThan(500);
      const local = metric("sluice_lease_decisions_total", 'by="lease"');
      expect(local).toBeGreaterThan(4_500);
      const tokens = (outcome: string): number => metric("sluice_lease_tokens_total", `outcome="${outcome}"`);
      expect(tokens("spent")).toBe(local);
      expect(tokens("granted") - tokens("spent") - tokens("returned") - tokens("lost")).toBe(
        metric("sluice_lease_tokens_in_hand"),
      );
      expect(metric("sluice_lease_fetches_total", 'outcome="granted"')).toBeGreaterThan(0);
    }
    expect((await one.leases()).held).toBe(1);

    await Promise.all([one.close(), two.close()]);
    expect(logged.filter(({ message }) => message === "leases returned")).toHaveLength(2);
    const exactly = await start({ SLUICE_LEASES: "off" });
    const request = { dimensions: { user: "whale", endpoint: "/busy" } };
    expect((await exactly.limiter.lease(request, { want: 0, holdMs: 1_000 })).unspent).toBe(0);
    const { remaining } = await exactly.limiter.peek(request);
    // A month's million comes back at two units in five seconds.
    expect(remaining).toBeGreaterThanOrEqual(limits.large - 10_000);
    expect(remaining).toBeLessThan(limits.large - 10_000 + 100);
  }, 120_000);

  it.each(["exact", "small"] as const)(
    "are exact to the unit for the policy %s",
    async (policy) => {
      const [one, two] = await Promise.all([start(), start()]);
      const overGrpc = createAsker(two);
      const counts = await Promise.all([
        hammer((checks) => one.ask(`/${policy}`, checks), limits[policy], 50),
        hammer((checks) => overGrpc(`/${policy}`, checks), limits[policy], 50),
      ]);
      expect(counts[0]! + counts[1]!).toBe(limits[policy]);
      for (const server of [one, two]) expect(await server.metric("sluice_lease_tokens_total")).toBe(0);
    },
    60_000,
  );

  it("forget denials on the server that is asked to reset, and within a second on the other", async () => {
    token = "of-the-operator";
    const sha256 = createHash("sha256").update(token).digest("hex");
    const tokens = join(folder, "tokens.yaml");
    await writeFile(tokens, JSON.stringify({ tokens: [{ name: "operator", role: "operator", sha256 }] }));
    const [one, two] = await Promise.all([start({ SLUICE_TOKENS: tokens }), start({ SLUICE_TOKENS: tokens })]);
    expect((await one.ask("/small", 1_000)).allowed).toBe(limits.small);
    for (const server of [one, two])
      await expect
        .poll(async () => {
          expect((await server.ask("/small", 10)).allowed).toBe(0);
          return server.metric("sluice_lease_decisions_total", 'by="denial"');
        }, soon)
        .toBeGreaterThan(0);
    await post(one, "/v1/reset", { dimensions: { user: "whale", endpoint: "/small" } });
    expect((await one.ask("/small", 1)).allowed).toBe(1);
    await expect.poll(async () => (await two.ask("/small", 1)).allowed, soon).toBe(1);
  }, 60_000);
});

describe("a server with leases", () => {
  it("obeys the kill switch, which spends nothing and asks no counters", async () => {
    const server = await start();
    await warmUp(server, "/large", 100);
    const decided = (): Promise<number> => server.metric("sluice_lease_decisions_total");
    const before = await decided();
    const untilMs = Date.now() + 3_600_000;
    server.limiter.force({ mode: "closed", untilMs });
    expect(await server.ask("/large", 10)).toEqual({ allowed: 0, denied: 10, degraded: 10 });
    server.limiter.force({ mode: "open", untilMs });
    expect(await server.ask("/large", 10)).toEqual({ allowed: 10, denied: 0, degraded: 10 });
    expect(await decided()).toBe(before);
    server.limiter.force(undefined);
    expect(await server.ask("/large", 10)).toEqual({ allowed: 10, denied: 0, degraded: 0 });
    expect(await decided()).toBe(before + 10);
  });

  it("continues without its counters until tokens are used up, says so, and leases again when they are back", async () => {
    const server = await start({ SLUICE_LEASE_TIME: "500ms" });
    await warmUp(server, "/large", 500);
    await redis.kill();
    await expect.poll(async () => (await server.get("/readyz")).status, soon).toBe("degraded");
    // No other subject has a lease to decide by.
    expect(await server.ask("/tight", 1)).toEqual({ allowed: 0, denied: 1, degraded: 1 });
    await expect
      .poll(async () => {
        expect(await server.ask("/large", 1)).toEqual({ allowed: 1, denied: 0, degraded: 0 });
        return (await server.leases()).stale;
      }, soon)
      .toBe(1);
    await expect.poll(messages, soon).toContainEqual(expect.stringContaining("used past their time"));
    expect(await server.get("/readyz")).toMatchObject({
      status: "degraded",
      detail: expect.stringContaining("except for what leases have left"),
      counters: { leases: { held: 1, stale: 1, stale_for_ms: expect.any(Number) } },
    });
    expect(await server.metric("sluice_leases_stale")).toBe(1);

    const { tokens } = await server.leases();
    const told: Outcome[] = [];
    while (told.length < 11) told.push(await server.ask("/large", 1_000));
    expect(told.reduce((sum, { allowed }) => sum + allowed, 0)).toBe(tokens);
    expect(told.reduce((sum, { degraded }) => sum + degraded, 0)).toBe(11_000 - tokens);
    await expect.poll(messages, soon).toContainEqual(expect.stringContaining("leases ran out"));
    expect(messages().filter((message) => message.includes("past their time"))).toHaveLength(1);

    await redis.restart();
    await warmUp(server, "/large", 100);
    expect(await server.ask("/large", 10)).toEqual({ allowed: 10, denied: 0, degraded: 0 });
  }, 120_000);

  it("reports it if the counters answer again before leases are used up", async () => {
    const server = await start({ SLUICE_LEASE_TIME: "500ms" });
    await warmUp(server, "/large", 500);
    // So seldom that tokens last.
    const seldom = { ...soon, interval: 200 };
    await redis.kill();
    await expect
      .poll(async () => {
        await server.ask("/large", 1);
        return messages();
      }, seldom)
      .toContainEqual(expect.stringContaining("used past their time"));
    await redis.restart();
    await expect
      .poll(async () => {
        await server.ask("/large", 1);
        return messages();
      }, seldom)
      .toContainEqual("the counter servers answer again, and leases are renewed");
    expect(await server.get("/readyz")).toMatchObject({ status: "ready", counters: { leases: { stale: 0 } } });
  }, 120_000);

  it("spends nothing after its stale time, however much is left", async () => {
    const server = await start({ SLUICE_LEASE_TIME: "500ms", SLUICE_LEASE_STALE: "0s" });
    await warmUp(server, "/large", 100);
    await redis.kill();
    await expect.poll(async () => (await server.ask("/large", 1)).degraded, soon).toBe(1);
    expect(await server.ask("/large", 100)).toEqual({ allowed: 0, denied: 100, degraded: 100 });
    await expect.poll(() => server.metric("sluice_lease_tokens_total", 'outcome="lost"'), soon).toBeGreaterThan(0);
  }, 60_000);

  it("stops even if its leases cannot be given back, and says so", async () => {
    const server = await start(holding);
    await warmUp(server, "/large", 100);
    await redis.kill();
    await expect.poll(async () => (await server.get("/readyz")).status, soon).toBe("degraded");
    await server.close();
    expect(messages()).toContain("some leases could not be returned");
  });

  it("decides everything by the counters if leases are off, and has no metrics for them", async () => {
    const server = await start({ SLUICE_LEASES: "off" });
    expect(await hammer((checks) => server.ask("/large", checks), 200, 20)).toBe(200);
    expect(await server.metric("sluice_redis_questions_total")).toBeGreaterThanOrEqual(200);
    expect(await server.leases()).toBeUndefined();
    expect(await (await fetch(`${server.url}/metrics`)).text()).not.toContain("sluice_lease_decisions");
    expect((await server.get("/readyz")).counters).not.toHaveProperty("leases");
  });
});
