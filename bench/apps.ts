// npm run bench -- apps [--json] [--quick]: what limiting adds to a request of Express and Fastify, in CPU time of the app,
// and what other libraries add to the same requests in the same run.
import { type ChildProcess, execFileSync, fork } from "node:child_process";
import path from "node:path";
import { parseArgs } from "node:util";
import { startServer } from "@sluice/test-servers";
import { HttpLoad } from "./measure/http-load.ts";
import { median } from "./measure/interleave.ts";

const { values: args } = parseArgs({
  options: { json: { type: "boolean", default: false }, quick: { type: "boolean", default: false } },
});

/**
 * The amount of work. Every app is started several times, because Node's optimizations differ between starts by more than
 * the overhead that is measured. A quick run shows that everything works; its numbers mean little.
 */
const size = args.quick
  ? { starts: 1, rounds: 2, warmup: 1, requests: 300, connections: 8 }
  : { starts: 7, rounds: 4, warmup: 2, requests: 12_000, connections: 32 };

const clients = 1000;
const address = (i: number): string => `203.0.${i >> 8}.${i & 255}`;
const requests: readonly Buffer[] = Array.from({ length: clients }, (_, i) => {
  const n = (i * 619) % clients;
  const lines = [
    `GET /orders/${n}?page=2 HTTP/1.1`,
    "Host: 127.0.0.1",
    "Accept: application/json",
    "User-Agent: bench",
    `X-Forwarded-For: ${address(n)}`,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
});

interface ServedApp {
  readonly name: string;
  readonly process: ChildProcess;
  readonly load: HttpLoad;
  /** Whether answers must have headers that show that a limit was checked. */
  readonly limited: boolean;
}

function askProcess<Answer>(child: ChildProcess, message?: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error("an app exited"));
    child.once("exit", onExit);
    child.once("message", (answer) => {
      child.off("exit", onExit);
      resolve(answer as Answer);
    });
    if (message !== undefined) child.send(message);
  });
}

async function startApp(name: string, redisUrl: string): Promise<ServedApp> {
  const file = path.join(import.meta.dirname, "apps", "served-app.ts");
  const child = fork(file, [name, redisUrl], { execArgv: [] });
  const { port } = await askProcess<{ port: number }>(child);
  const load = await HttpLoad.open(port, size.connections);
  return { name, process: child, load, limited: name.includes(",") };
}

async function playRound(app: ServedApp): Promise<number> {
  const before = await askProcess<{ cpuUs: number }>(app.process, {});
  await app.load.send(requests, size.requests, (answer) => {
    const isLimited = /\r\nx-ratelimit-remaining: \d+\r\n/i.test(answer) && !/x-ratelimit-degraded/i.test(answer);
    return answer.startsWith("HTTP/1.1 200 ") && isLimited === app.limited;
  });
  const after = await askProcess<{ cpuUs: number }>(app.process, {});
  return (after.cpuUs - before.cpuUs) / size.requests;
}

const names = {
  express: "express",
  expressOurs: "express, sluice",
  expressTheirs: "express, express-rate-limit",
  fastify: "fastify",
  fastifyOurs: "fastify, sluice",
  fastifyTheirs: "fastify, @fastify/rate-limit",
  redisOurs: "express, sluice on redis",
  redisTheirs: "express, rate-limit-redis",
} as const;

// Users run compiled code. Running TypeScript directly would affect Node's optimizations.
const root = path.join(import.meta.dirname, "..");
const compile = path.join(root, "node_modules", ".bin", "tsc");
execFileSync(compile, ["-b", "packages/middleware", "packages/redis"], { cwd: root, stdio: "inherit" });

/** CPU time per request by app, round by round. */
const cpuUs = new Map<string, number[]>(Object.values(names).map((name) => [name, []]));

async function measureOneStart(redisUrl: string): Promise<void> {
  const apps: ServedApp[] = [];
  try {
    for (const name of Object.values(names)) apps.push(await startApp(name, redisUrl));
    for (let round = 0; round < size.warmup + size.rounds; round++) {
      for (const app of apps) {
        const perRequestUs = await playRound(app);
        if (round >= size.warmup) cpuUs.get(app.name)!.push(perRequestUs);
      }
    }
  } finally {
    for (const { process: child, load } of apps) {
      load.close();
      child.kill();
    }
  }
}

const server = await startServer({ flavor: "valkey" });
try {
  for (let start = 0; start < size.starts; start++) await measureOneStart(server.url);
} finally {
  await server.close();
}

const medianCpu = (name: string): number => median(cpuUs.get(name)!);

/** The overhead over the bare app: the median of the differences within a round. */
function addedBy(name: string, bare: string): number {
  const without = cpuUs.get(bare)!;
  return median(cpuUs.get(name)!.map((us, round) => us - without[round]!));
}

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));
const overheadRatio = (ours: string, theirs: string, bare: string): number =>
  rounded(addedBy(ours, bare) / addedBy(theirs, bare), 2);

const result = {
  suite: "apps",
  cpu_us_per_request: Object.fromEntries(Object.values(names).map((name) => [name, rounded(medianCpu(name), 2)])),
  added_us_per_request: {
    express: rounded(addedBy(names.expressOurs, names.express), 2),
    express_rate_limit: rounded(addedBy(names.expressTheirs, names.express), 2),
    fastify: rounded(addedBy(names.fastifyOurs, names.fastify), 2),
    fastify_rate_limit: rounded(addedBy(names.fastifyTheirs, names.fastify), 2),
    express_redis: rounded(addedBy(names.redisOurs, names.express), 2),
    rate_limit_redis: rounded(addedBy(names.redisTheirs, names.express), 2),
  },
  ratio: {
    express_overhead_vs_express_rate_limit: overheadRatio(names.expressOurs, names.expressTheirs, names.express),
    fastify_overhead_vs_fastify_rate_limit: overheadRatio(names.fastifyOurs, names.fastifyTheirs, names.fastify),
    express_redis_overhead_vs_rate_limit_redis: overheadRatio(names.redisOurs, names.redisTheirs, names.express),
  },
};

console.log(
  `an app in its own process, started ${size.starts} times, ${size.connections} connections, ${clients} clients, in turns; µs of CPU per request`,
);
for (const [name, us] of Object.entries(result.cpu_us_per_request))
  console.log(`  ${name.padEnd(34)} ${us.toFixed(2).padStart(8)}`);
console.log("added to the bare app");
for (const [name, us] of Object.entries(result.added_us_per_request))
  console.log(`  ${name.padEnd(34)} ${us.toFixed(2).padStart(8)}`);
for (const [name, value] of Object.entries(result.ratio)) console.log(`  ${name.padEnd(44)} ${value}`);
if (args.json) console.log(JSON.stringify(result));
