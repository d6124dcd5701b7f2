import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CheckBatchRequest, CheckBatchResponse, CheckRequest, Decision } from "@sluice/protocol";
import { RedisCounters } from "@sluice/redis";
import { createLimiter } from "sluice";
import { parsePolicyText } from "sluice/policy-text";
import { type Caller, callGrpc, callHttp, callResp } from "./callers.ts";
import { type MeasuredServer, startMeasuredServer } from "./start-measured-server.ts";
import { openStoreProbe, type StoreProbe, startOwnStore } from "./store-probe.ts";

/** What one operation cost on this machine. Bytes on the wire are of both directions, without headers of TCP and IP. */
export interface MeasuredCapacity {
  /** CPU time of a server for a check of one limit, with its counters in memory, by how it was asked. */
  readonly server_us_per_check: Readonly<Record<MeasuredTransport, number>>;
  readonly client_bytes_per_check: Readonly<Record<MeasuredTransport, number>>;
  /** More for each further limit. */
  readonly server_us_per_limit: number;
  /** Of a server, for each counter in its memory. */
  readonly server_counter_bytes: number;
  /** Undefined: no store was given, and none is installed. */
  readonly store: MeasuredStore | undefined;
}

export type MeasuredTransport = "grpc" | "grpc-batch" | "http" | "resp" | "resp-pipeline" | "library";

export interface MeasuredStore {
  readonly product: string;
  /** More for a server, for each limit that the store decides. */
  readonly server_us_per_take: number;
  /** CPU time of the store: for a take in a full call, and for a call. */
  readonly store_us_per_take: number;
  readonly store_us_per_call: number;
  readonly counter_bytes: number;
  readonly store_bytes_per_take: number;
  /** To each replica. Undefined: the store has none. */
  readonly replication_bytes_per_take: number | undefined;
}

export interface MeasureRequest {
  /** The store to measure. Undefined: one that is started for it, if one is installed. */
  readonly redis: string | undefined;
  /** How long each load runs, once to warm up and once measured. */
  readonly loadMs: number;
  /** How many counters memory is measured by. */
  readonly counters: number;
  onStep(what: string): void;
}

const policies = `policies:
  - { id: one, match: { endpoint: /one }, limits: [{ by: [user], windows: [1M/s] }], counters: exact, on_failure: open }
  - id: three
    match: { endpoint: /three }
    limits: [{ by: [user], windows: [1M/s] }, { by: [tenant], windows: [1M/s] }, { by: [ip], windows: [1M/s] }]
    counters: exact
    on_failure: open
  - { id: kept, match: { endpoint: /kept }, limits: [{ by: [user], windows: [60/h] }], counters: exact, on_failure: open }
`;
const perBatch = 64;
const unaryPath = "/sluice.v1.RateLimiter/Check";
const batchPath = "/sluice.v1.RateLimiter/CheckBatch";
const subjects = 10_000;

/** Measures by a server in its own process, and load from this one: only the server's and the store's CPU time count. */
export async function measureCapacity(request: MeasureRequest): Promise<MeasuredCapacity> {
  const end = (): void => process.exit(1);
  for (const signal of endingSignals) process.once(signal, end);
  try {
    return await measureAll(request);
  } finally {
    for (const signal of endingSignals) process.off(signal, end);
  }
}

const endingSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

async function measureAll(request: MeasureRequest): Promise<MeasuredCapacity> {
  // First, because it is better known before a minute than after it that a store cannot be reached.
  const probe = request.redis === undefined ? await startOwnStore() : await openStoreProbe(request.redis);
  const folder = await mkdtemp(join(tmpdir(), "sluice-measure-"));
  const config = join(folder, "policies.yaml");
  try {
    await writeFile(config, policies);
    const inMemory = await measureServer(request, config);
    if (probe === undefined) return { ...inMemory, store: undefined };
    const store = await measureStore(request, config, probe, inMemory.server_us_per_check["grpc-batch"]);
    return { ...inMemory, store };
  } finally {
    await probe?.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function start(config: string, redis: string): Promise<MeasuredServer> {
  const ofStore = redis === "" ? {} : { SLUICE_REDIS_URL: redis, SLUICE_LEASES: "off", SLUICE_DEADLINE: "2s" };
  const ports = { SLUICE_HTTP_PORT: "0", SLUICE_GRPC_PORT: "0", SLUICE_RESP_PORT: "0" };
  return startMeasuredServer(
    { RATE_LIMIT_CONFIG: config, SLUICE_MAX_CHECKS_PER_SECOND: "0", ...ports, ...ofStore },
    policies,
  );
}

async function measureServer(request: MeasureRequest, config: string): Promise<Omit<MeasuredCapacity, "store">> {
  const server = await start(config, "");
  const { ports } = server;
  try {
    const measured = {} as Record<MeasuredTransport | "three", Used>;
    // The first time compiles and warms up: everything, because what one load is compiled for depends on the others.
    for (const time of ["warming up", "measuring"]) {
      for (const [name, load] of Object.entries(loadsOf(ports))) {
        request.onStep(`${time}: ${name}`);
        measured[name as MeasuredTransport] = await run(load, server, request.loadMs);
      }
    }
    request.onStep("measuring: library");
    measured.library = { cpuUs: await measureLibrary(server, request.counters), bytes: 0 };
    const { three, ...byTransport } = measured;
    request.onStep("measuring: memory");
    const before = await server.usage();
    await createCounters(ports.grpc, request.counters);
    const after = await server.usage();
    return {
      server_us_per_check: mapValues(byTransport, ({ cpuUs }) => cpuUs),
      client_bytes_per_check: mapValues(byTransport, ({ bytes }) => bytes),
      server_us_per_limit: Math.max(0, (three.cpuUs - measured["grpc-batch"].cpuUs) / 2),
      server_counter_bytes: Math.max(0, after.rssBytes - before.rssBytes) / request.counters,
    };
  } finally {
    server.stop();
  }
}

async function measureStore(
  request: MeasureRequest,
  config: string,
  probe: StoreProbe,
  batchUs: number,
): Promise<MeasuredStore> {
  const server = await start(config, probe.url);
  const { grpc } = server.ports;
  try {
    request.onStep(`measuring: takes together, ${probe.product}`);
    await run(batches(grpc, "/one"), server, request.loadMs, probe);
    const together = await run(batches(grpc, "/one"), server, request.loadMs, probe);
    request.onStep(`measuring: takes one by one, ${probe.product}`);
    const alone = await measureAlone(probe, request.loadMs);
    request.onStep(`measuring: memory, ${probe.product}`);
    const before = await probe.usage();
    await createCounters(grpc, request.counters);
    const after = await probe.usage();
    const perCall = Math.max(0, ((alone.storeUs - together.storeUs) * perBatch) / (perBatch - 1));
    return {
      product: probe.product,
      server_us_per_take: Math.max(0, together.cpuUs - batchUs),
      store_us_per_take: Math.max(0, together.storeUs - perCall / perBatch),
      store_us_per_call: perCall,
      counter_bytes: (after.memoryBytes - before.memoryBytes) / request.counters,
      store_bytes_per_take: alone.storeBytes,
      replication_bytes_per_take: alone.replicatedBytes,
    };
  } finally {
    server.stop();
  }
}

/** Many processes, of which each has one take in flight: nothing travels together. */
async function measureAlone(probe: StoreProbe, loadMs: number): Promise<UsedOfStore> {
  const limiters = Array.from({ length: 32 }, () =>
    createLimiter({
      policies: parsePolicyText(policies).policySet,
      counters: new RedisCounters({ servers: probe.url, deadlineMs: 2_000 }),
    }),
  );
  const load: Load = {
    callers: limiters.map((limiter, lane) => ({
      async ask(body) {
        const { allowed, degraded } = await limiter.check({ dimensions: dimensions(Number(body) + lane, "/one") });
        demandDecided(allowed && degraded === undefined);
        return body;
      },
      bytes: () => 0,
      close: () => void limiter.close(),
    })),
    inFlight: limiters.length,
    checks: 1,
    body: (index) => Buffer.from(`${index % subjects}`),
    verify: () => {},
  };
  const own = { usage: async () => ({ cpuUs: 0, rssBytes: 0 }) };
  await ask(load, loadMs / 4);
  return run(load, own, loadMs, probe);
}

async function measureLibrary(server: MeasuredServer, checks: number): Promise<number> {
  const before = await server.usage({ decide: checks });
  const after = await server.usage({ decide: 4 * checks });
  return (after.cpuUs - before.cpuUs) / (4 * checks);
}

/** A load: what is sent, how many at a time, and how many checks each is. */
interface Load {
  readonly callers: readonly Caller[];
  readonly inFlight: number;
  readonly checks: number;
  body(index: number): Buffer;
  /** Throws unless the answer was decided by counters. */
  verify(answer: Buffer): void;
}

const dimensions = (index: number, endpoint: string): Record<string, string> => ({
  user: `user-${index}`,
  tenant: `t${index % 100}`,
  ip: `192.0.2.${index % 250}`,
  endpoint,
});

function loadsOf({ http, resp, grpc }: MeasuredServer["ports"]): Record<string, Load> {
  return {
    grpc: calls(grpc, 128),
    "grpc-batch": batches(grpc, "/one"),
    http: {
      callers: [callHttp(http, "/v1/check", 32)],
      inFlight: 32,
      checks: 1,
      body: (index) => Buffer.from(JSON.stringify({ dimensions: dimensions(index % subjects, "/one") })),
      verify: (answer) => demandDecided(JSON.parse(answer.toString()).allowed === true),
    },
    resp: commands(resp, 1, 8),
    "resp-pipeline": commands(resp, 16, 8),
    three: batches(grpc, "/three"),
  };
}

function calls(port: number, inFlight: number): Load {
  return {
    callers: [callGrpc(port, unaryPath, Math.min(4, inFlight))],
    inFlight,
    checks: 1,
    body: (index) =>
      framed(CheckRequest.encode(CheckRequest.fromPartial({ dimensions: dimensions(index % subjects, "/one") }))),
    verify(answer) {
      const { allowed, degraded } = Decision.decode(answer.subarray(frameHead));
      demandDecided(allowed && !degraded);
    },
  };
}

function batches(port: number, endpoint: string): Load {
  return {
    callers: [callGrpc(port, batchPath, 2)],
    inFlight: 8,
    checks: perBatch,
    body: (index) => batch(index * perBatch, endpoint),
    verify(answer) {
      const { results } = CheckBatchResponse.decode(answer.subarray(frameHead));
      demandDecided(results.every(({ decision }) => decision?.allowed === true && !decision.degraded));
    },
  };
}

function commands(port: number, together: number, connections: number): Load {
  return {
    callers: Array.from({ length: connections }, () => callResp(port, together)),
    inFlight: connections,
    checks: together,
    body: (index) =>
      Buffer.from(
        Array.from({ length: together }, (_, i) => throttle(`key:${(index * together + i) % subjects}`)).join(""),
      ),
    verify: () => {},
  };
}

function throttle(key: string): string {
  const words = ["CL.THROTTLE", key, "1000000", "1000000", "1", "1"];
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`;
}

function batch(from: number, endpoint: string): Buffer {
  const checks = Array.from({ length: perBatch }, (_, i) =>
    CheckRequest.fromPartial({
      dimensions: dimensions(endpoint === "/kept" ? from + i : (from + i) % subjects, endpoint),
    }),
  );
  return framed(CheckBatchRequest.encode({ sequence: 0, checks, deadlineMs: 0 }));
}

const frameHead = 5;

function framed(writer: { finish(): Uint8Array }): Buffer {
  const message = writer.finish();
  const head = Buffer.alloc(frameHead);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function demandDecided(decided: boolean): void {
  if (!decided) throw new Error("a check was not decided by the counters; is the machine too busy to measure?");
}

/** For one check. */
interface Used {
  readonly cpuUs: number;
  readonly bytes: number;
}

interface UsedOfStore extends Used {
  readonly storeUs: number;
  readonly storeBytes: number;
  readonly replicatedBytes: number | undefined;
}

async function run(
  load: Load,
  server: Pick<MeasuredServer, "usage">,
  loadMs: number,
  probe: StoreProbe,
): Promise<UsedOfStore>;
async function run(load: Load, server: Pick<MeasuredServer, "usage">, loadMs: number): Promise<Used>;
async function run(
  load: Load,
  server: Pick<MeasuredServer, "usage">,
  loadMs: number,
  probe?: StoreProbe,
): Promise<Used> {
  const bytes = (): number => load.callers.reduce((sum, caller) => sum + caller.bytes(), 0);
  try {
    const before = { ...(await server.usage()), bytes: bytes(), store: await probe?.usage() };
    const checks = await ask(load, loadMs);
    const after = { ...(await server.usage()), bytes: bytes(), store: await probe?.usage() };
    const used = { cpuUs: (after.cpuUs - before.cpuUs) / checks, bytes: (after.bytes - before.bytes) / checks };
    if (before.store === undefined || after.store === undefined) return used;
    const { replicatedBytes } = after.store;
    return {
      ...used,
      storeUs: (after.store.cpuUs - before.store.cpuUs) / checks,
      storeBytes: (after.store.netBytes - before.store.netBytes) / checks,
      replicatedBytes:
        replicatedBytes === undefined ? undefined : (replicatedBytes - (before.store.replicatedBytes ?? 0)) / checks,
    } as UsedOfStore;
  } finally {
    for (const caller of load.callers) caller.close();
  }
}

/** Keeps as many in flight as the load says, and resolves with how many checks were answered. */
async function ask({ callers, inFlight, checks, body, verify }: Load, forMs: number): Promise<number> {
  const endMs = performance.now() + forMs;
  let sent = 0;
  await Promise.all(
    Array.from({ length: inFlight }, async (_, lane) => {
      const caller = callers[lane % callers.length]!;
      do verify(await caller.ask(body(sent++)));
      while (performance.now() < endMs);
    }),
  );
  return sent * checks;
}

async function createCounters(port: number, counters: number): Promise<void> {
  const load = batches(port, "/kept");
  let next = 0;
  await Promise.all(
    Array.from({ length: load.inFlight }, async () => {
      while (next * perBatch < counters) load.verify(await load.callers[0]!.ask(load.body(next++)));
    }),
  );
  for (const caller of load.callers) caller.close();
}

function mapValues<Key extends string, From, To>(
  values: Readonly<Record<Key, From>>,
  map: (value: From) => To,
): Record<Key, To> {
  return Object.fromEntries(Object.entries<From>(values).map(([key, value]) => [key, map(value)])) as Record<Key, To>;
}
