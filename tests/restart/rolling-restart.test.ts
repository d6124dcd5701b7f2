import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, credentials } from "@grpc/grpc-js";
import { createClient } from "@redis/client";
import { grpcService } from "@sluice/protocol";
import { HealthCheckResponse_ServingStatus as Health, HealthDefinition } from "@sluice/protocol/health";
import { startServer, type TestServer } from "@sluice/test-servers";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { followReadiness } from "./follow-readiness.ts";
import { type Sluice, startSluice } from "./start-sluice.ts";
import {
  type Caller,
  grpcCaller,
  httpCaller,
  respCaller,
  startTraffic,
  streamCaller,
  type Traffic,
} from "./traffic.ts";

const patience = { timeout: 60_000, interval: 20 };
const quota = 1_000_000_000;
/** Does not refill, so that the remainder shows exactly how much was taken. Without counters nothing is allowed. */
const policies = `policies: [{ id: p, limits: [{ by: [user], algorithm: fixed_window, windows: [${quota} once] }], on_failure: closed }]\n`;

let redis: TestServer;
let folder: string;
let servers: Sluice[];
let callers: Caller[];
let traffic: Traffic[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-restart-"));
  await writeFile(join(folder, "policies.yaml"), policies);
  redis = await startServer({ flavor: "valkey" });
});

afterAll(async () => {
  await redis.close();
  await rm(folder, { recursive: true, force: true });
});

async function start(...args: string[]): Promise<Sluice> {
  // Most of a start is compiling, which one process can do for the others.
  const env = { SLUICE_REDIS_URL: redis.url, NODE_COMPILE_CACHE: join(folder, "compiled") };
  const server = await startSluice(env, "--config", join(folder, "policies.yaml"), ...args);
  servers.push(server);
  await vi.waitFor(async () => expect(await server.isReady()).toBe(true), patience);
  return server;
}

/** The remainder of the quota, and so the charges. */
async function readTaken(subject: string, { http }: Sluice): Promise<number> {
  const body = JSON.stringify({ dimensions: { user: subject }, preview: true });
  const headers = { "content-type": "application/json", connection: "close" };
  const response = await fetch(`${http}/v1/check`, { method: "POST", headers, body });
  return quota - ((await response.json()) as { remaining: number }).remaining;
}

/** Resolves when all of them have made this many more calls; rejects as soon as one has failed. */
async function goOn(calls: number): Promise<void> {
  const aims = traffic.map(({ tally }) => tally.allowed + calls);
  for (;;) {
    for (const [index, { tally }] of traffic.entries()) expect(tally.failures, callers[index]!.name).toEqual([]);
    if (traffic.every(({ tally }, index) => tally.allowed >= aims[index]!)) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe.each([
  ["one process", []],
  ["two workers", ["--workers", "2"]],
] as const)("a rolling restart of servers of %s", (what, args) => {
  let first: Sluice;
  let second: Sluice;
  /** Replaces the first. */
  let third: Sluice;

  beforeAll(async () => {
    [servers, callers, traffic] = [[], [], []];
    [first, second, third] = await Promise.all([
      start("--drain", "2s", ...args),
      start("--drain", "2s", ...args),
      start("--drain", "10m", ...args),
    ]);
  }, 120_000);

  afterEach(async () => {
    await Promise.all(traffic.map((one) => one.stop()));
    await Promise.all(callers.map((caller) => caller.close()));
    [callers, traffic] = [[], []];
  });

  afterAll(() => Promise.all(servers.map((server) => server.kill())));

  it("fails not one call, over any protocol, and charges each once", async () => {
    const subject = `u${what.replaceAll(/\W/g, "")}`;
    const streams = streamCaller(subject);
    const byReadiness = [httpCaller(subject), respCaller(subject)];
    const byChannel = [grpcCaller(subject), streams];
    callers = [...byReadiness, ...byChannel];
    for (const caller of callers) caller.use([first, second]);
    const useReady = (ready: readonly Sluice[]): void => {
      for (const caller of byReadiness) caller.use(ready);
    };
    let unfollow = followReadiness([first, second], useReady);
    traffic = callers.map((caller) => startTraffic(caller, 3));
    await goOn(50);

    expect(await first.stop()).toBe(0);
    await goOn(50);
    await unfollow();
    unfollow = followReadiness([second, third], useReady);
    for (const caller of byChannel) caller.use([second, third]);
    await goOn(50);

    expect(await second.stop()).toBe(0);
    await goOn(50);
    await unfollow();
    await Promise.all(traffic.map((one) => one.stop()));

    for (const [index, { tally }] of traffic.entries()) expect(tally.failures, callers[index]!.name).toEqual([]);
    const allowed = traffic.reduce((sum, { tally }) => sum + tally.allowed, 0);
    expect(await readTaken(subject, third)).toBe(allowed);
    for (const { log } of [first, second]) expect(log).not.toContain("cut off");
  }, 300_000);

  it("is announced before anything is closed", async () => {
    const server = third;
    const stopped = server.stop();
    await expect.poll(() => server.isReady(), patience).toBe(false);

    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ dimensions: { user: "u" } });
    const http = await fetch(`${server.http}/v1/check`, { method: "POST", headers, body });
    expect(http.status).toBe(200);
    expect(http.headers.get("connection")).toBe("close");
    expect((await fetch(`${server.http}/readyz`)).status).toBe(503);

    const caller = grpcCaller("u");
    callers.push(caller);
    caller.use([server]);
    expect(await caller.call()).toBe(1);
    expect(await readHealth(server)).toBe(Health.NOT_SERVING);

    const resp = createClient({ RESP: 2, socket: { host: "127.0.0.1", port: server.respPort } });
    await resp.connect();
    expect(await resp.ping()).toBe("PONG");
    resp.destroy();

    expect(await Promise.race([server.stop(), stopped])).toBe(0);
  }, 120_000);
});

async function readHealth({ grpc }: Sluice): Promise<Health> {
  const { path, requestSerialize, responseDeserialize } = grpcService(HealthDefinition).check;
  const client = new Client(grpc, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  try {
    return await new Promise<Health>((resolve, reject) => {
      const deadline = Date.now() + 30_000;
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        { service: "" },
        { deadline },
        (error, answer) => (error === null ? resolve(answer!.status) : reject(error)),
      );
    });
  } finally {
    client.close();
  }
}
