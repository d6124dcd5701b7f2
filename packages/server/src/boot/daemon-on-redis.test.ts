import { EventEmitter } from "node:events";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runProgram } from "@sluice/cli";
import {
  createCertificates,
  flavors,
  startCluster,
  startSentinel,
  startServer,
  type TestServer,
} from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { WatchOptions } from "../data-plane/policy-files/watch-policy-files.ts";
import { parseSettings } from "../settings/parse-settings.ts";
import { createRecordingLog } from "../testing/recording-log.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

let folder: string;
let file: string;
let logged: { level: string; fields: Record<string, unknown>; message: string }[];
let closing: (() => Promise<unknown>)[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-on-redis-"));
  file = join(folder, "policies.yaml");
  logged = [];
  closing = [() => rm(folder, { recursive: true, force: true })];
});

afterEach(async () => {
  for (const close of closing.reverse()) await close();
});

const log = createRecordingLog((line) => logged.push(line));

const policies = `
policies:
  - { id: open, match: { endpoint: /open }, limits: [{ by: [user], windows: [5/h] }], on_failure: open }
  - { id: closed, match: { endpoint: /closed }, limits: [{ by: [user], windows: [5/h] }], on_failure: closed }
  - { id: tenants, match: { endpoint: /tenants }, limits: [{ by: [tenant], windows: [5/h] }], on_failure: closed }
default: none
`;

/** Policies in the rate_limits format, with settings of the service. Breakers open soon, and probe often. */
const withRuntime = (redis: string): string => `
rate_limits: [{ name: a, scope: user, resource: api, capacity: 5, refill_rate: 0.001 }]
runtime:
  fail_open: false
  redis: ${redis}
  health_check: { failure_threshold: 2, check_interval_seconds: 0.1 }
`;

async function save(text: string): Promise<void> {
  await writeFile(join(folder, ".next"), text);
  await rename(join(folder, ".next"), file);
}

interface Started extends Daemon {
  get(path: string): Promise<{ status: number; body: Record<string, unknown>; text: string }>;
  check(endpoint: string, dimensions?: Record<string, string>): Promise<Response>;
  becomes(status: number): Promise<void>;
}

/** A daemon on the policies above, or on those in the file already. It waits long for counters by default. */
async function start(
  env: Record<string, string>,
  text: string = policies,
  watch: WatchOptions = { quietMs: 10, pollMs: 3_600_000 },
): Promise<Started> {
  await save(text);
  const reading = parseSettings({ SLUICE_DEADLINE: "5s", ...env }, { httpPort: "0", grpcPort: "off", config: file });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const { settings } = reading;
  const daemon = await startDaemon({ settings, log, watch });
  closing.push(() => daemon.close());
  const get: Started["get"] = async (path) => {
    const response = await fetch(daemon.url + path);
    const answer = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return { status: response.status, body: isJson ? JSON.parse(answer) : {}, text: answer };
  };
  return {
    ...daemon,
    get,
    check: (endpoint, dimensions = { user: "u" }) => post(`${daemon.url}/v1/check`, { ...dimensions, endpoint }),
    becomes: (status) =>
      expect.poll(async () => (await get("/readyz?strict")).status, { timeout: 30_000, interval: 10 }).toBe(status),
  };
}

function post(url: string, dimensions: Record<string, string>): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ dimensions }),
  });
}

async function server(flavor: "valkey" | "redis" = "valkey", args: readonly string[] = []): Promise<TestServer> {
  const started = await startServer({ flavor, args });
  closing.push(() => started.close());
  return started;
}

const listKeys = async (at: TestServer): Promise<string[]> => (await at.command("KEYS", "*")) as string[];

describe.each(flavors)("a server on %s", (flavor) => {
  it("enforces limits there, explains them, and reports it in metrics", async () => {
    const redis = await server(flavor);
    const { check, get, becomes, url, countersAt } = await start({
      SLUICE_REDIS_URL: redis.url,
      SLUICE_REDIS_PREFIX: "test",
    });
    await becomes(200);
    expect(countersAt).toBe(redis.url);
    const statuses = [];
    for (let i = 0; i < 6; i++) statuses.push((await check("/open")).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    expect(await listKeys(redis)).toEqual([expect.stringMatching(/^test:.*:u$/)]);
    const explained = await post(`${url}/v1/explain`, { user: "u", endpoint: "/open" });
    expect(await explained.json()).toMatchObject({ decision: { allowed: false, remaining: 0 } });
    expect((await get("/readyz")).body).toMatchObject({ status: "ready", counters: { shards: 1, away: [] } });

    const { text } = await get("/metrics");
    const shard = `${redis.host}:${redis.port}`;
    const value = (name: string): number =>
      Number(new RegExp(`^${name.replace(/[{}]/g, "\\$&")} (.*)$`, "m").exec(text)?.[1]);
    expect(value("sluice_redis_ready")).toBe(1);
    expect(value(`sluice_redis_shard_connected{shard="${shard}",cell=""}`)).toBe(1);
    expect(value(`sluice_redis_breaker_open{shard="${shard}",cell=""}`)).toBe(0);
    expect(Math.abs(value(`sluice_redis_clock_ahead_seconds{shard="${shard}",cell=""}`))).toBeLessThan(60);
    expect(value("sluice_redis_questions_total")).toBeGreaterThanOrEqual(6);
    for (const name of ["calls", "script_loads"]) expect(value(`sluice_redis_${name}_total`), name).toBeGreaterThan(0);
    for (const name of ["failed_calls", "timeouts", "retries", "foreign_values", "healed_keys"])
      expect(value(`sluice_redis_${name}_total`), name).toBe(0);
    expect(text).not.toContain("sluice_counters");
  });
});

describe("two servers on one store", () => {
  it("enforce one limit exactly", async () => {
    const redis = await server();
    const one = await start({ SLUICE_REDIS_URL: redis.url });
    const two = await start({ REDIS_CLUSTER_URL: `${redis.host}:${redis.port}` });
    await Promise.all([one.becomes(200), two.becomes(200)]);
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? one : two).check("/closed")));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(35);
  });
});

describe("without its store, a server", () => {
  it("starts, answers as policies say, says so once, and enforces when the store is there", async () => {
    const redis = await server();
    await redis.kill();
    const { check, get, becomes } = await start({ SLUICE_REDIS_URL: redis.url });
    expect((await get("/livez")).status).toBe(200);
    const ready = await get("/readyz");
    expect(ready.status).toBe(200);
    const shard = `${redis.host}:${redis.port}`;
    expect(ready.body).toMatchObject({
      status: "degraded",
      degraded: ["counters_unavailable"],
      counters: { shards: 1, away: [{ shard, why: "there is no connection" }] },
    });
    expect(ready.body.detail).toContain(shard);

    const open = await check("/open");
    expect(open.status).toBe(200);
    expect(open.headers.get("x-ratelimit-degraded-reason")).toBe("storage_unavailable");
    const closed = await check("/closed");
    expect(closed.status).toBe(503);
    expect(Number(closed.headers.get("retry-after"))).toBeLessThanOrEqual(5);
    const { text } = await get("/metrics");
    expect(text).toContain(
      'sluice_degraded_decisions_total{policy="open",domain="default",reason="storage_unavailable",allowed="true"} 1',
    );
    expect(text).toContain(
      'sluice_degraded_decisions_total{policy="closed",domain="default",reason="storage_unavailable",allowed="false"} 1',
    );
    expect(text).toContain("\nsluice_redis_ready 0\n");

    await redis.restart();
    await becomes(200);
    const statuses = [];
    for (let i = 0; i < 6; i++) statuses.push((await check("/closed")).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    expect(logged.filter(({ level, fields }) => level === "error" && fields.shard === shard)).toHaveLength(1);
    expect(logged.filter(({ message }) => message === "connected to a counter server")).toHaveLength(1);
  });

  it("answers as policies say when the store is unavailable, and enforces when it is back, even without requests meanwhile", async () => {
    const redis = await server();
    const { check, becomes, url } = await start({ SLUICE_REDIS_URL: redis.url });
    await becomes(200);
    expect((await check("/closed")).headers.get("x-ratelimit-degraded")).toBeNull();
    await redis.kill();
    await becomes(503);
    expect((await check("/open")).headers.get("x-ratelimit-degraded")).toBe("true");
    const refused = await check("/closed");
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).not.toBeNull();
    const explained = await post(`${url}/v1/explain`, { user: "u", endpoint: "/open" });
    expect(explained.status).toBe(503);
    const errors = logged.filter(({ level }) => level === "error").map(({ message }) => message);
    expect(errors).toEqual([expect.stringContaining("no connection to a counter server")]);
    await redis.restart();
    await becomes(200);
    const statuses = [];
    for (let i = 0; i < 6; i++) statuses.push((await check("/closed")).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
  });

  it("is still ready, says that it is degraded, and is not ready by ?strict and sluice status --strict", async () => {
    const redis = await server();
    const { get, check, becomes, url } = await start({ SLUICE_REDIS_URL: redis.url });
    await becomes(200);
    await redis.kill();
    await becomes(503);
    expect(await get("/readyz")).toMatchObject({
      status: 200,
      body: { status: "degraded", degraded: ["counters_unavailable"] },
    });
    expect((await check("/open")).status).toBe(200);
    const status = async (...flags: string[]): Promise<{ code: number; out: string }> => {
      let out = "";
      const write = (text: string): unknown => (out += text);
      const terminal = { stdout: { write }, stderr: { write } };
      const args = ["status", "--server", url, ...flags];
      return { code: await runProgram({ args, env: {}, terminal, signals: new EventEmitter() }), out };
    };
    expect(await status()).toMatchObject({ code: 0, out: expect.stringMatching(/^status {4}degraded: the counters/) });
    expect((await status("--strict")).code).toBe(1);
    await redis.restart();
    await becomes(200);
    expect((await status("--strict")).code).toBe(0);
  });

  it("is ready again after its breaker opened, even without requests", async () => {
    const redis = await server();
    const { url, becomes, get } = await start(
      { SLUICE_DEADLINE: "30ms" },
      withRuntime(`{ host: ${redis.host}, port: ${redis.port} }`),
    );
    await becomes(200);
    redis.pause();
    const ask = async (): Promise<number> =>
      (await post(`${url}/v1/check`, { scope: "user", resource: "api", user: "u" })).status;
    await expect
      .poll(async () => {
        await ask();
        return logged.some(
          ({ level, message }) => level === "error" && message.includes("breaker of a counter server opened"),
        );
      })
      .toBe(true);
    const { status, body } = await get("/readyz");
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: "degraded", counters: { shards: 1, away: [{ why: expect.any(String) }] } });
    redis.resume();
    await becomes(200);
    expect(
      logged.some(({ level, message }) => level === "info" && message === "the breaker of a counter server closed"),
    ).toBe(true);
  });
});

describe("servers of every kind", () => {
  it("are found by Sentinels", async () => {
    const sentinel = await startSentinel({ flavor: "valkey", replicas: 0 });
    closing.push(() => sentinel.close());
    const hosts = sentinel.sentinels.map(({ host, port }) => `${host}:${port}`).join(",");
    const { check, becomes } = await start({ SLUICE_REDIS_URL: `redis+sentinel://${hosts}/${sentinel.masterName}` });
    await becomes(200);
    expect((await check("/closed")).status).toBe(200);
    expect(await listKeys(sentinel.servers[0]!)).toHaveLength(1);
  });

  it("are a cluster if REDIS_CLUSTER_URL names several nodes, or one that is a node", async () => {
    const cluster = await startCluster({ flavor: "valkey" });
    closing.push(() => cluster.close());
    for (const nodes of [cluster.nodes, cluster.nodes.slice(0, 1)]) {
      const { check, becomes, countersAt, get } = await start({
        REDIS_CLUSTER_URL: nodes.map(({ host, port }) => `${host}:${port}`).join(","),
        REDIS_MAX_CONN: "2",
      });
      await becomes(200);
      expect(countersAt).toMatch(/^redis\+cluster:/);
      expect((await get("/readyz")).body).toMatchObject({ counters: { shards: 3 } });
      for (let i = 0; i < 20; i++) expect((await check("/closed", { user: `u${i}` })).status).toBe(200);
      await expect
        .poll(() => logged.filter(({ message }) => message.includes("REDIS_MAX_CONN")), { timeout: 30_000 })
        .toMatchObject([{ level: "warn", fields: { servers: 3, most: 2 } }]);
      logged = [];
    }
  });

  it("are a standalone server if REDIS_CLUSTER_URL names one, even if it can be asked only later", async () => {
    const redis = await server();
    await redis.kill();
    const daemon = await start({ REDIS_CLUSTER_URL: redis.url });
    expect((await daemon.get("/readyz?strict")).status).toBe(503);
    await redis.restart();
    await daemon.becomes(200);
    expect((await daemon.check("/closed")).status).toBe(200);
    expect(await listKeys(redis)).toEqual([expect.stringMatching(/^s:/)]);
  });

  it("may have cells as well", async () => {
    const [main, own] = await Promise.all([server(), server("redis")]);
    const cells = join(folder, "cells.txt");
    await writeFile(cells, `cells:\n  - { name: acme, redis: "${own.url}", values: { tenant: acme } }\n`);
    const { check, becomes, get } = await start({ SLUICE_REDIS_URL: main.url, SLUICE_REDIS_CELLS: cells });
    await becomes(200);
    await check("/tenants", { tenant: "acme" });
    await check("/tenants", { tenant: "other" });
    expect(await listKeys(own)).toEqual([expect.stringMatching(/:acme$/)]);
    expect(await listKeys(main)).toEqual([expect.stringMatching(/:other$/)]);
    expect((await get("/metrics")).text).toContain(`{shard="${own.host}:${own.port}",cell="acme"} 1`);
    await own.kill();
    await becomes(503);
    expect((await get("/readyz")).body).toMatchObject({ counters: { shards: 2, away: [{ cell: "acme" }] } });
    expect((await check("/tenants", { tenant: "other" })).status).toBe(200);
    expect((await check("/tenants", { tenant: "acme" })).status).toBe(503);
  });

  it("are spoken to in TLS, and take certificates that were exchanged on SIGHUP", async () => {
    const certificates = await createCertificates();
    closing.push(() => certificates.close());
    const redis = await startServer({ flavor: "valkey", tls: certificates, args: ["--tls-auth-clients", "yes"] });
    closing.push(() => redis.close());
    const { check, becomes, reload } = await start({
      REDIS_CLUSTER_URL: `${redis.host}:${redis.port}`,
      REDIS_USE_TLS: "true",
      SLUICE_REDIS_CA: certificates.ca,
      SLUICE_REDIS_CERT: certificates.clientCert,
      SLUICE_REDIS_KEY: certificates.clientKey,
    });
    await becomes(200);
    expect((await check("/closed")).status).toBe(200);
    await reload();
    expect(logged.filter(({ message }) => message.includes("certificates"))).toEqual([]);
    await writeFile(certificates.clientCert, "\n", { flag: "a" });
    await reload();
    expect(logged.filter(({ message }) => message.includes("certificates"))).toHaveLength(1);
    expect(await (await check("/closed")).json()).toMatchObject({ remaining: 3 });
    await writeFile(certificates.clientCert, "gone");
    await reload();
    expect(logged.filter(({ level }) => level === "error")).toMatchObject([
      { fields: { reason: expect.stringContaining("SLUICE_REDIS_CERT") } },
    ]);
    expect(await (await check("/closed")).json()).toMatchObject({ remaining: 2 });
  });
});

describe("passwords", () => {
  const password = "hunter2-topsecret";
  let redis: TestServer;

  beforeAll(async () => {
    redis = await startServer({ flavor: "valkey" });
    await redis.command("ACL", "SETUSER", "sluice", "on", `>${password}`, "~*", "&*", "+@all");
    await redis.command("ACL", "SETUSER", "reader", "on", `>${password}`, "~*", "&*", "+@all", "-evalsha", "-eval");
    await redis.command("ACL", "SETUSER", "default", "resetpass", ">another-secret");
  });
  afterAll(() => redis.close());

  /** Everything that a stranger or a reader of logs gets to see. */
  async function told({ get, check, url }: Started): Promise<string> {
    const answers = await Promise.all([
      ...["/readyz", "/livez", "/metrics", "/v1/policies", "/openapi.json", "/nowhere"].map((path) => get(path)),
      ...["/open", "/closed"].map(async (endpoint) => ({ text: await (await check(endpoint)).text() })),
      post(`${url}/v1/explain`, { user: "u", endpoint: "/open" }).then(async (one) => ({ text: await one.text() })),
    ]);
    return JSON.stringify(logged) + answers.map(({ text }) => text).join("\n");
  }

  it("open the door, and are revealed to no one", async () => {
    const address = `${redis.host}:${redis.port}`;
    for (const env of [
      { REDIS_CLUSTER_URL: address, REDIS_CLUSTER_USERNAME: "sluice", REDIS_CLUSTER_PASSWORD: password },
      { SLUICE_REDIS_URL: `redis://sluice@${address}`, REDIS_CLUSTER_PASSWORD: password },
      { SLUICE_REDIS_URL: `redis://sluice:${password}@${address}` },
    ]) {
      const daemon = await start(env);
      await daemon.becomes(200);
      expect(await told(daemon)).not.toContain("secret");
    }
  });

  it("that are wrong are reported, but not revealed", async () => {
    const wrong = "wrong-secret";
    const daemon = await start({ SLUICE_REDIS_URL: `redis://sluice:${wrong}@${redis.host}:${redis.port}` });
    await expect
      .poll(() => logged.filter(({ level }) => level === "error"), { timeout: 30_000 })
      .toMatchObject([
        {
          fields: {
            reason: expect.stringContaining("WRONGPASS"),
            advice: expect.stringContaining("REDIS_CLUSTER_PASSWORD"),
          },
        },
      ]);
    expect((await daemon.get("/readyz?strict")).status).toBe(503);
    expect(await told(daemon)).not.toContain("secret");
  });

  it("of users that may not run scripts lead to refusals that are logged once", async () => {
    const daemon = await start({
      SLUICE_REDIS_URL: `redis://reader@${redis.host}:${redis.port}`,
      REDIS_CLUSTER_PASSWORD: password,
    });
    await daemon.becomes(200);
    for (let i = 0; i < 3; i++) expect((await daemon.check("/closed")).status).toBe(503);
    expect(logged.filter(({ level }) => level === "error")).toMatchObject([
      {
        message: "a counter server refused a call; on_failure answered",
        fields: { reason: expect.stringMatching(/^NOPERM/) },
      },
    ]);
    expect(await told(daemon)).not.toContain("secret");
  });
});

describe("the runtime block of policy files", () => {
  it("says where counters are, and they move with it; unreachable servers change nothing", async () => {
    const [first, second, third] = await Promise.all([server(), server("redis"), server()]);
    await third.kill();
    const at = ({ host, port }: TestServer): string =>
      withRuntime(`{ mode: standalone, host: ${host}, port: ${port} }`);
    // Files are read only when the test asks for it, so that each attempt is the test's own.
    const daemon = await start({}, at(first), { quietMs: 3_600_000, pollMs: 3_600_000 });
    await daemon.becomes(200);
    const ask = (): Promise<Response> => post(`${daemon.url}/v1/check`, { scope: "user", resource: "api", user: "u" });
    expect((await ask()).status).toBe(200);
    expect(await listKeys(first)).toHaveLength(1);

    await save(at(second));
    await daemon.reload();
    expect(
      logged.some(({ level, message }) => level === "info" && message.startsWith("counters moved to other servers")),
    ).toBe(true);
    expect(await (await ask()).json()).toMatchObject({ remaining: 4 });
    expect(await listKeys(second)).toHaveLength(1);

    await save(at(third));
    await daemon.reload();
    const errors = logged.filter(({ level }) => level === "error");
    expect(errors.filter(({ fields }) => "to" in fields)).toMatchObject([
      { fields: { from: second.url, to: third.url } },
    ]);
    // Beside it only the connection that could not be made.
    expect(errors.filter(({ fields }) => "shard" in fields)).toHaveLength(errors.length - 1);
    expect(await (await ask()).json()).toMatchObject({ remaining: 3 });
    expect((await daemon.get("/readyz?strict")).status).toBe(200);

    await third.restart();
    await daemon.reload();
    expect(await (await ask()).json()).toMatchObject({ remaining: 4 });
    expect(await listKeys(third)).toHaveLength(1);
  });

  it("is applied once when a reload is requested while the watcher applies it", async () => {
    const [first, silent] = await Promise.all([server(), server()]);
    const at = ({ host, port }: TestServer): string =>
      withRuntime(`{ mode: standalone, host: ${host}, port: ${port} }`);
    const daemon = await start({}, at(first));
    await daemon.becomes(200);
    // A server that accepts connections and answers nothing keeps the watcher's attempt under way.
    silent.pause();
    await save(at(silent));
    await expect
      .poll(() => logged.some(({ message }) => message === "policies reloaded"), { timeout: 30_000 })
      .toBe(true);
    await daemon.reload();
    expect(logged.filter(({ level }) => level === "error")).toMatchObject([
      { fields: { from: first.url, to: silent.url } },
    ]);
  });

  it("yields to settings, and reports which of its fields have no effect", async () => {
    const redis = await server();
    const { becomes } = await start(
      { SLUICE_REDIS_URL: redis.url },
      withRuntime("{ host: nowhere.example, port: 1, socket_timeout_ms: 7, connection_pool_size: 50 }"),
    );
    await becomes(200);
    expect(logged.find(({ fields }) => "settings" in fields)).toMatchObject({
      level: "warn",
      fields: { settings: ["redis.host", "redis.port", "redis.socket_timeout_ms"] },
    });
  });

  it("may ask for a longer read cache than there is, as its format allows", async () => {
    const { host, port } = await server();
    const { becomes } = await start(
      {},
      `${withRuntime(`{ host: ${host}, port: ${port} }`)}  read_cache_ttl_ms: 60000\n`,
    );
    await becomes(200);
  });

  it("takes effect at the next start if counters would leave this process's memory", async () => {
    const daemon = await start({});
    const redis = await server();
    await save(withRuntime(`{ port: ${redis.port} }`));
    await daemon.reload();
    expect(logged.filter(({ level, message }) => level === "warn" && message.includes("next start"))).not.toEqual([]);
    expect(daemon.countersAt).toBe("memory");
    expect((await daemon.get("/readyz?strict")).status).toBe(200);
  });
});

describe("a start", () => {
  it("warns of a server that forgets counters in use", async () => {
    const redis = await server("redis", ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-random"]);
    await start({ SLUICE_REDIS_URL: redis.url });
    await expect
      .poll(() => logged.filter(({ message }) => message === "a counter server is configured in a risky way"), {
        timeout: 30_000,
      })
      .toMatchObject([{ level: "warn", fields: { concern: expect.stringContaining("allkeys-random") } }]);
  });

  it.each([
    [{ SLUICE_REDIS_CA: "/nowhere/ca.pem" }, /^SLUICE_REDIS_CA \(--redis-ca\): .*write rediss:\/\//],
    [{ SLUICE_REDIS_CA: "/nowhere/ca.pem", REDIS_USE_TLS: "true" }, /^SLUICE_REDIS_CA .*ca\.pem does not exist/],
    [{ SLUICE_REDIS_CERT: "/nowhere/c.pem", REDIS_USE_TLS: "1" }, /^SLUICE_REDIS_CERT.*SLUICE_REDIS_KEY.*name both/],
    [{ SLUICE_REDIS_CELLS: "/nowhere/cells.yaml" }, /^SLUICE_REDIS_CELLS \(--redis-cells\): .* does not exist/],
  ])("is refused for %j", async (env, message) => {
    await expect(start({ SLUICE_REDIS_URL: "redis://127.0.0.1:1", ...env } as Record<string, string>)).rejects.toThrow(
      message,
    );
  });
});
