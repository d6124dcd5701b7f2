// npm run bench -- service [--json] [--quick]: what a decision costs over each protocol, in CPU time of the server, compared with
// bare echo servers in the same run. Counters in memory, and for streams also on a Valkey; one process; load from h2load, wrk and redis-benchmark.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { CheckBatchRequest, CheckRequest } from "@sluice/protocol";
import { RateLimitRequest } from "@sluice/protocol/envoy";
import { startServer } from "@sluice/test-servers";
import { median } from "./measure/interleave.ts";
import { askOneByOne, askTogether } from "./service/ask-by-client.ts";
import { countDegraded, degradedShare } from "./service/count-degraded.ts";
import { framed } from "./service/framed.ts";
import { type Load, loadByH2load, loadByRedisBenchmark, loadByWrk } from "./service/load-tools.ts";
import { type Served, startServed } from "./service/start-served.ts";
import { wrkScript } from "./service/wrk-script.ts";

const { values: args } = parseArgs({
  options: { json: { type: "boolean", default: false }, quick: { type: "boolean", default: false } },
});

/** The amount of work. A quick run shows that everything works; its numbers mean little. */
const size = args.quick
  ? { rounds: 1, warmup: 0, calls: 500, batches: 100, seconds: 1, commands: 5_000, checks: 500 }
  : { rounds: 7, warmup: 2, calls: 60_000, batches: 3_000, seconds: 3, commands: 500_000, checks: 20_000 };

const perBatch = 64;
const messagesPerStream = 50;
const http = { connections: 32 };
const grpc = { connections: 8, streams: 64 };

const root = path.join(import.meta.dirname, "..");
// Users run compiled code.
execFileSync(path.join(root, "node_modules", ".bin", "tsc"), ["-b", "packages/server", "packages/client"], {
  cwd: root,
  stdio: "inherit",
});

const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-"));
const file = (name: string, content: string | Uint8Array): string => {
  const at = path.join(folder, name);
  writeFileSync(at, content);
  return at;
};

const createCheck = (user: number): CheckRequest =>
  CheckRequest.fromPartial({ dimensions: { tenant: `t${user % 7}`, user: `user-${user}`, endpoint: "/v1/orders" } });
const createChecks = (batch: number): CheckRequest[] =>
  Array.from({ length: perBatch }, (_, i) => createCheck(batch * perBatch + i));

/** What Envoy asks about one request. */
const createEnvoyRequest = (): RateLimitRequest =>
  RateLimitRequest.fromPartial({ domain: "shop", descriptors: [{ entries: [{ key: "user", value: "user-7" }] }] });

const files = {
  policies: file(
    "policies.yaml",
    "policies:\n" +
      "- { id: orders, match: { endpoint: /v1/orders }, limits: [{ by: [user], windows: [1M/s] }], on_failure: open }\n" +
      "- { id: shop, domain: shop, limits: [{ by: [user], windows: [1M/s] }], on_failure: open }\n",
  ),
  unary: file("unary.bin", framed(CheckRequest.encode(createCheck(7)).finish())),
  envoy: file("envoy.bin", framed(RateLimitRequest.encode(createEnvoyRequest()).finish())),
  stream: file(
    "stream.bin",
    Buffer.concat(
      Array.from({ length: messagesPerStream }, (_, sequence) =>
        framed(CheckBatchRequest.encode({ sequence, checks: createChecks(sequence), deadlineMs: 0 }).finish()),
      ),
    ),
  ),
  one: file("one.lua", wrkScript('{"dimensions":{"tenant":"t1","user":"user-%d","endpoint":"/v1/orders"}}')),
  batch: file(
    "batch.lua",
    wrkScript(JSON.stringify({ checks: createChecks(3).map(({ dimensions }) => ({ dimensions })) })),
  ),
};

interface Contest {
  readonly server: Served;
  /** Runs once, and returns the number of checks. */
  run(): Promise<{ readonly checks: number; readonly load: Load }>;
}

interface Round {
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly load: Load;
}

const started: Served[] = [];
const shared = new Map<string, Served>();

/**
 * A process for each contest: one protocol's effect on Node's optimizations must not be measured with another. In a quick run, whose
 * numbers mean little, contests about the same server share it.
 */
async function start(
  name: "sluice" | "grpc-js echo" | "fastify echo" | "node echo",
  ...redis: readonly string[]
): Promise<Served> {
  const key = [name, ...redis].join(" ");
  const before = args.quick ? shared.get(key) : undefined;
  if (before !== undefined) return before;
  const server = await startServed(name, files.policies, ...redis);
  started.push(server);
  shared.set(key, server);
  return server;
}

async function unary(
  name: "sluice" | "grpc-js echo",
  method: string,
  body: string = files.unary,
  ...redis: readonly string[]
): Promise<Contest> {
  const server = await start(name, ...redis);
  const url = `http://127.0.0.1:${server.ports.grpc}${method}`;
  const sent = { requests: size.calls, ...grpc };
  return { server, run: async () => ({ checks: size.calls, load: await loadByH2load(url, body, sent) }) };
}

/** Messages are sent without waiting for answers, as fast as they are accepted. */
async function streams(...redis: readonly string[]): Promise<Contest> {
  const server = await start("sluice", ...redis);
  const url = `http://127.0.0.1:${server.ports.grpc}/sluice.v1.RateLimiter/CheckStream`;
  const requests = Math.ceil(size.batches / messagesPerStream);
  const perRequest = messagesPerStream * perBatch;
  return {
    server,
    run: async () => {
      const load = await loadByH2load(url, files.stream, { requests, connections: 2, streams: 2 });
      return { checks: requests * perRequest, load: { perSecond: load.perSecond * perRequest } };
    },
  };
}

async function posts(name: "sluice" | "fastify echo" | "node echo", script: string, perPost: number): Promise<Contest> {
  const server = await start(name);
  const url = `http://127.0.0.1:${server.ports.http}/v1/check`;
  return {
    server,
    run: async () => {
      const load = await loadByWrk(url, script, size.seconds, http.connections);
      return {
        checks: load.perSecond * size.seconds * perPost,
        load: { ...load, perSecond: load.perSecond * perPost },
      };
    },
  };
}

async function commands(...command: readonly string[]): Promise<Contest> {
  const server = await start("sluice");
  const { resp = 0 } = server.ports;
  return {
    server,
    run: async () => ({ checks: size.commands, load: await loadByRedisBenchmark(resp, size.commands, command) }),
  };
}

async function client(ask: typeof askTogether): Promise<Contest> {
  const server = await start("sluice");
  return { server, run: () => ask(server.ports.grpc!, size.checks) };
}

const valkey = await startServer({ flavor: "valkey" });
const contests = {
  grpcUnary: await unary("sluice", "/sluice.v1.RateLimiter/Check"),
  grpcEcho: await unary("grpc-js echo", "/bench.Echo/Check"),
  grpcUnaryLeased: await unary("sluice", "/sluice.v1.RateLimiter/Check", files.unary, valkey.url, "on"),
  rlsUnary: await unary("sluice", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", files.envoy),
  grpcStream: await streams(),
  grpcStreamValkey: await streams(valkey.url),
  http: await posts("sluice", files.one, 1),
  httpEcho: await posts("fastify echo", files.one, 1),
  httpNodeEcho: await posts("node echo", files.one, 1),
  httpBatch: await posts("sluice", files.batch, perBatch),
  respCheck: await commands("SLUICE.CHECK", "user=__rand_int__", "endpoint=/v1/orders"),
  respThrottle: await commands("CL.THROTTLE", "key:__rand_int__", "1000000", "1000000", "1"),
  clientTogether: await client(askTogether),
  clientOneByOne: await client(askOneByOne),
};

type Name = keyof typeof contests;
const names = Object.keys(contests) as Name[];
const rounds = new Map<Name, Round[]>(names.map((name) => [name, []]));
let undecided = 0;

try {
  for (let round = 0; round < size.warmup + size.rounds; round++) {
    for (const name of names) {
      const { server, run } = contests[name];
      const before = await server.used();
      const { checks, load } = await run();
      const after = await server.used();
      if (round < size.warmup) continue;
      rounds.get(name)!.push({ perSecond: load.perSecond, cpuUs: (after.cpuUs - before.cpuUs) / checks, load });
    }
  }
  undecided = degradedShare(await countDegraded(contests.grpcStreamValkey.server));
} finally {
  for (const server of started) server.stop();
  await valkey.close();
  rmSync(folder, { recursive: true, force: true });
}

const rounded = (value: number, digits = 2): number => Number(value.toFixed(digits));
const rate = (name: Name): number => Math.round(median(rounds.get(name)!.map(({ perSecond }) => perSecond)));
const cpuUs = (name: Name): number => rounded(median(rounds.get(name)!.map((one) => one.cpuUs)));
const perCpuSecond = (name: Name): number => Math.round(1e6 / median(rounds.get(name)!.map((one) => one.cpuUs)));
/** How many times as fast: the median of the ratios within a round. */
const ratio = (name: Name, than: Name): number =>
  rounded(median(rounds.get(name)!.map(({ perSecond }, i) => perSecond / rounds.get(than)![i]!.perSecond)));
/** The same in CPU time of the servers, where the load tool may be what is too slow. */
const cpuRatio = (name: Name, than: Name): number =>
  rounded(median(rounds.get(name)!.map(({ cpuUs: one }, i) => rounds.get(than)![i]!.cpuUs / one)));
const latency = (pick: (load: Load) => number | undefined): number =>
  rounded(median(rounds.get("http")!.map(({ load }) => pick(load) ?? Number.NaN)));

const result = {
  suite: "service",
  grpc_unary_per_s: rate("grpcUnary"),
  grpc_unary_checks_per_cpu_s: perCpuSecond("grpcUnary"),
  grpc_unary_leased_checks_per_cpu_s: perCpuSecond("grpcUnaryLeased"),
  rls_unary_checks_per_cpu_s: perCpuSecond("rlsUnary"),
  grpc_stream64_checks_per_cpu_s: perCpuSecond("grpcStream"),
  http_per_s: rate("http"),
  http_batch64_checks_per_cpu_s: perCpuSecond("httpBatch"),
  resp_pipelined_per_cpu_s: perCpuSecond("respCheck"),
  resp_cl_throttle_per_cpu_s: perCpuSecond("respThrottle"),
  cpu_us_per_check: Object.fromEntries(names.map((name) => [snake(name), cpuUs(name)])),
  grpc_stream64_valkey_undecided_share: rounded(undecided, 5),
  p50_ms: latency(({ p50Ms }) => p50Ms),
  p99_ms: latency(({ p99Ms }) => p99Ms),
  ratio: {
    grpc_unary_vs_bare_grpcjs_echo: cpuRatio("grpcUnary", "grpcEcho"),
    grpc_unary_leased_vs_memory: cpuRatio("grpcUnaryLeased", "grpcUnary"),
    http_vs_bare_node_echo: ratio("http", "httpNodeEcho"),
    http_vs_bare_fastify_echo: ratio("http", "httpEcho"),
    client_batched_vs_one_call: ratio("clientTogether", "clientOneByOne"),
  },
};

function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

console.log(
  `servers in their own processes, ${size.rounds} rounds in turns; checks a second, and µs of the server's CPU for each`,
);
for (const name of names)
  console.log(
    `  ${snake(name).padEnd(20)} ${`${rate(name)}`.padStart(10)} /s ${cpuUs(name).toFixed(2).padStart(8)} µs`,
  );
console.log(
  `  HTTP at ${http.connections} connections: median ${result.p50_ms} ms, 99th percentile ${result.p99_ms} ms`,
);
console.log(
  `  of the checks on streams over a Valkey, ${(undecided * 100).toFixed(3)} % were decided without it, because it did not answer in time`,
);
for (const [name, value] of Object.entries(result.ratio)) console.log(`  ${name.padEnd(36)} ${value}`);
if (args.json) console.log(JSON.stringify(result));
