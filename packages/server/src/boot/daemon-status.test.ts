import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { createFaultyProxy, startServer } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLogger } from "../observe/telemetry/logger.ts";
import { parseSettings } from "../settings/parse-settings.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

let folder: string;
let closing: (() => Promise<unknown>)[];
let lines: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-status-"));
  closing = [() => rm(folder, { recursive: true, force: true })];
  lines = "";
});

afterEach(async () => {
  for (const close of closing.reverse()) await close();
});

function closeLater<T extends { close(): Promise<unknown> }>(one: T): T {
  closing.push(() => one.close());
  return one;
}

const policies = "policies: [{ id: p, limits: [{ by: [user], windows: [3/h] }], on_failure: open }]\n";

async function start(env: Readonly<Record<string, string>> = {}): Promise<Daemon> {
  const config = join(folder, "policies.yaml");
  await writeFile(config, policies);
  const reading = parseSettings(env, { httpPort: "0", grpcPort: "0", respPort: "0", config });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const { settings } = reading;
  const output = { write: (text: string) => (lines += text) };
  const { logLevel: level, logHashSubjects: hashSubjects } = settings;
  const log = createLogger({ level, format: "json", stdout: output, stderr: output, hashSubjects });
  return closeLater(await startDaemon({ settings, log, watch: { quietMs: 10, pollMs: 3_600_000 } }));
}

async function get(daemon: Daemon, path: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(daemon.url + path);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function check(daemon: Daemon, headers: Readonly<Record<string, string>> = {}, user = "ann"): Promise<number> {
  const response = await fetch(`${daemon.url}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ dimensions: { user } }),
  });
  await response.text();
  return response.status;
}

const soon = { timeout: 30_000, interval: 20 };

describe("the status of a server", () => {
  it("shows policies, counters, queue, connections and versions", async () => {
    const daemon = await start();
    for (let i = 0; i < 4; i++) await check(daemon);
    const { status, body } = await get(daemon, "/v1/status");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      status: "ready",
      node: process.version,
      pid: process.pid,
      policies: {
        ...{ generation: 1, count: 1, state: "current", source: "files", problem_count: 0, problems: [] },
        path: join(folder, "policies.yaml"),
        digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
      counters: { kind: "memory", counters: 1, max_counters: 4_000_000 },
      queue: { pending: 0, max_pending: 10_000 },
      shed: { pending: 0, rate: 0 },
      protocols: {
        http: { addresses: [daemon.url], connections: expect.any(Number), turned_away: 0 },
        grpc: { addresses: daemon.addresses.grpc, connections: 0 },
        resp: { addresses: daemon.addresses.resp, connections: 0 },
      },
    });
    expect(body).not.toHaveProperty("worker");
    const { connections } = (body.protocols as Record<string, { connections: number }>).http!;
    expect(connections).toBeGreaterThan(0);
    expect(body.uptime_ms).toBeGreaterThanOrEqual((body.policies as { age_ms: number }).age_ms);
  });

  it("shows each counter server, and a slow one, which is still asked", async () => {
    const server = closeLater(await startServer({ flavor: "valkey" }));
    const proxy = closeLater(await createFaultyProxy(server));
    const daemon = await start({ SLUICE_REDIS_URL: proxy.url, SLUICE_DEADLINE: "10s" });
    await expect.poll(async () => (await get(daemon, "/readyz?strict")).status, soon).toBe(200);
    expect(await check(daemon)).toBe(200);
    const shards = async (): Promise<unknown> =>
      ((await get(daemon, "/v1/status")).body.counters as Record<string, unknown>).shards;
    expect(await shards()).toMatchObject([
      { shard: `127.0.0.1:${proxy.port}`, connected: true, breaker: "closed", calls: 1, failed_calls: 0 },
    ]);
    const [first] = (await shards()) as { round_trip_ms: number; clock_ahead_ms: number }[];
    expect(first!.round_trip_ms).toBeLessThan(2_000);
    expect(Math.abs(first!.clock_ahead_ms)).toBeLessThan(60_000);
    // A server that answers nothing is asked for its time every five seconds, and counts as slow after two.
    proxy.blackhole();
    await expect.poll(async () => (await get(daemon, "/readyz")).body.status, { timeout: 30_000 }).toBe("degraded");
    const { status, body } = await get(daemon, "/readyz");
    expect(status).toBe(200);
    expect(body.detail).toMatch(
      /take longer than 2000 ms to answer \(127\.0\.0\.1:\d+: the last exchange took \d+ ms\)/,
    );
    expect((await get(daemon, "/v1/status")).body).toMatchObject({
      ...{ status: "degraded", detail: expect.stringContaining("to answer (127.0.0.1:") },
    });
  }, 60_000);
});

describe("logs of a server", () => {
  it("contain decisions at level debug, hashed if configured, and none otherwise", async () => {
    const quiet = await start();
    await check(quiet);
    expect(lines).not.toContain("within_limits");
    const hashing = await start({ SLUICE_LOG_LEVEL: "debug", SLUICE_LOG_HASH_SUBJECTS: "true" });
    await check(hashing, {}, "somebody-in-particular");
    expect(lines).toMatch(/"dimensions":\{"user":"#[0-9a-f]{12}"\},"reason":"within_limits","policy":"p"/);
    expect(lines).not.toContain("somebody-in-particular");
    const open = await start({ SLUICE_LOG_LEVEL: "debug" });
    await check(open, {}, "somebody-else");
    expect(lines).toContain('"dimensions":{"user":"somebody-else"}');
  });
});

describe("traces of a server", () => {
  const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

  /** An empty message, which every protocol buffer may be. */
  async function callOverGrpc(daemon: Daemon, method: string): Promise<unknown> {
    const client = new Client(daemon.addresses.grpc[0]!.replace("grpc://", ""), credentials.createInsecure(), {
      "grpc.use_local_subchannel_pool": 1,
    });
    const metadata = new Metadata();
    metadata.set("traceparent", parent);
    const bytes = (one: Buffer): Buffer => one;
    try {
      return await new Promise((resolve, reject) => {
        client.makeUnaryRequest(method, bytes, bytes, Buffer.alloc(0), metadata, (error, answer) =>
          error === null ? resolve(answer) : reject(error),
        );
      });
    } finally {
      client.close();
    }
  }

  async function sayOverResp(daemon: Daemon, command: string): Promise<void> {
    const socket = connect(Number(new URL(daemon.addresses.resp[0]!).port), "127.0.0.1");
    socket.write(`${command}\r\n`);
    await once(socket, "data");
    socket.destroy();
  }

  it("cover requests over every protocol, below their callers' spans, the last ones when it stops", async () => {
    const bodies: string[] = [];
    const collector = createServer((request, response) => {
      request.setEncoding("utf8").on("data", (text: string) => bodies.push(text));
      request.on("end", () => response.end("{}"));
    });
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
    closing.push(() => {
      collector.closeAllConnections();
      return new Promise((done) => collector.close(done));
    });
    const { port } = collector.address() as AddressInfo;
    const daemon = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` });
    for (let i = 0; i < 4; i++) await check(daemon, { traceparent: parent }, "a-subject");
    await check(daemon, { traceparent: parent.replace(/01$/, "00") });
    expect(await (await fetch(`${daemon.url}/metrics`)).text()).toMatch(
      /^sluice_trace_spans_total\{outcome="dropped"\} 0$/m,
    );
    await callOverGrpc(daemon, "/sluice.v1.RateLimiter/Check");
    await sayOverResp(daemon, "SLUICE.CHECK user=a-subject");
    await daemon.close();
    const told = bodies.join("");
    expect(told.match(/"name":"POST \/v1\/check"/g)).toHaveLength(4);
    expect(told.match(/"name":"sluice.v1.RateLimiter\/Check"/g)).toHaveLength(1);
    expect(told.match(/"name":"sluice.decide"/g)).toHaveLength(6);
    expect(told.match(/"parentSpanId":"b7ad6b7169203331"/g)).toHaveLength(5);
    expect(told).toContain('{"key":"network.protocol.name","value":{"stringValue":"resp"}}');
    expect(told).toContain('{"key":"rpc.response.status_code","value":{"stringValue":"OK"}}');
    expect(told).toContain('{"key":"http.response.status_code","value":{"intValue":"429"}}');
    expect(told).not.toContain("a-subject");
  });

  it("are dropped without a collector, which affects nothing else and is logged once", async () => {
    const daemon = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" });
    for (let i = 0; i < 3; i++) expect(await check(daemon, { traceparent: parent })).toBe(200);
    expect(await check(daemon, { traceparent: parent })).toBe(429);
    await expect.poll(() => lines, soon).toContain("the collector does not accept traces");
    await daemon.close();
    expect(lines.match(/the collector does not accept traces/g)).toHaveLength(1);
  });
});
