// One server in a separate process, so that its CPU time can be measured: `node served.ts <name>`. Sends its ports to the parent, and
// answers every message with the CPU time it has used and the memory it holds, after a garbage collection if requested.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { CheckRequest } from "@sluice/protocol";
import { parseSettings, startDaemon } from "@sluice/server";
import { fastify } from "fastify";

export interface Ports {
  readonly http?: number;
  readonly grpc?: number;
  readonly resp?: number;
}

export interface Used {
  readonly cpuUs: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Sluice as users serve it, with a limit that is never reached. Its bound on the check rate is lifted, because the rate is measured.
 * Counters on a server decide every check, unless leases are on. `settings` is JSON of further variables.
 */
async function serveSluice(policies: string, redis: string, leases: string, settings: string): Promise<Ports> {
  const reading = parseSettings({
    RATE_LIMIT_CONFIG: policies,
    ...(redis === "" ? {} : { SLUICE_REDIS_URL: redis, SLUICE_LEASES: leases }),
    SLUICE_HTTP_PORT: "0",
    SLUICE_GRPC_PORT: "0",
    SLUICE_RESP_PORT: "0",
    SLUICE_MAX_CHECKS_PER_SECOND: "0",
    ...JSON.parse(settings),
  });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const { addresses } = await startDaemon({ settings: reading.settings, log: silent });
  const findPort = ([url = ""]: readonly string[]): number => Number(url.slice(url.lastIndexOf(":") + 1));
  return { http: findPort(addresses.http), grpc: findPort(addresses.grpc), resp: findPort(addresses.resp) };
}

/** The cost of gRPC itself: a call that is decoded and echoed. */
async function serveGrpcEcho(): Promise<Ports> {
  const server = new Server();
  server.addService(
    {
      echo: {
        path: "/bench.Echo/Check",
        requestStream: false,
        responseStream: false,
        requestDeserialize: (bytes: Buffer) => CheckRequest.decode(bytes),
        requestSerialize: (message: CheckRequest) => Buffer.from(CheckRequest.encode(message).finish()),
        responseSerialize: (message: CheckRequest) => Buffer.from(CheckRequest.encode(message).finish()),
        responseDeserialize: (bytes: Buffer) => CheckRequest.decode(bytes),
      },
    },
    {
      echo: (call: { request: CheckRequest }, answer: (error: null, value: CheckRequest) => void) =>
        answer(null, call.request),
    },
  );
  const grpc = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    ),
  );
  return { grpc };
}

/** An answer with the fields and sizes of Sluice's own to an ordinary check. */
const decisionBody = {
  allowed: true,
  reason: "allowed",
  cost: 1,
  policy: "orders",
  version: 1,
  scope: "user",
  window: { limit: 1_000_000, per_ms: 1_000, burst: 1_000_000, label: "1M/s" },
  limit: 1_000_000,
  remaining: 999_999,
  used: 1,
  reset_after_ms: 1,
  reset_at_ms: 1_790_000_000_000,
  more_after_ms: 1,
  state: "normal",
  deny_count: 0,
  replayed: false,
  preview: false,
};

/** The least that HTTP and JSON cost in Node: the body of a check is read and parsed, and the body of a decision written. */
async function serveNodeEcho(): Promise<Ports> {
  const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { dimensions } = JSON.parse(Buffer.concat(pieces).toString()) as { dimensions?: unknown };
      const body = JSON.stringify({ ...decisionBody, allowed: dimensions !== undefined });
      response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
      response.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { http: (server.address() as AddressInfo).port };
}

/** The cost of HTTP and JSON behind a framework. */
async function serveFastifyEcho(): Promise<Ports> {
  const app = fastify({ keepAliveTimeout: 600_000 });
  app.post("/v1/check", (request, reply) => reply.send(request.body));
  await app.listen({ host: "127.0.0.1", port: 0 });
  return { http: (app.server.address() as AddressInfo).port };
}

const [name, policies = "", redis = "", leases = "off", settings = "{}"] = process.argv.slice(2);
const serve = {
  sluice: () => serveSluice(policies, redis, leases, settings),
  "grpc-js echo": serveGrpcEcho,
  "fastify echo": serveFastifyEcho,
  "node echo": serveNodeEcho,
}[name ?? ""];
if (serve === undefined) throw new Error(`unknown server ${name}`);
process.on("message", ({ afterCollection }: { afterCollection: boolean }) => {
  if (afterCollection) globalThis.gc?.();
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  process.send?.({ cpuUs: user + system, rssBytes: rss, heapBytes: heapUsed } satisfies Used);
});
process.on("disconnect", () => process.exit());
process.send?.(await serve());
