// npm run bench -- redis [--json] [--quick] [--flavor valkey|redis]: how fast counters on a server decide, what that
// costs the server and this process, how much memory a counter takes there, and how other libraries perform.
import { parseArgs } from "node:util";
import { RedisCounters, type RedisCountersStats } from "@sluice/redis";
import {
  type Flavor,
  flavors,
  startCluster,
  startServer,
  type TestCluster,
  type TestServer,
} from "@sluice/test-servers";
import { createLimiter, type Decision } from "sluice";
import {
  type Asker,
  askThrough,
  createAsker,
  findMedian,
  interleaveOnServers,
  medianRatio,
  nodeUsPerCheck,
  perSecond,
  type ServerRounds,
  serverUsPerCheck,
} from "./measure/interleave-on-servers.ts";
import { closedLoop, type Latencies, openLoop, percentile } from "./measure/latencies.ts";
import { connect, rateLimiterFlexible, rateLimitRedis, singleEvalsha } from "./redis/other-limiters.ts";

const { values: args } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    flavor: { type: "string", default: "valkey" },
  },
});

/** The amount of work. A quick run shows that everything works; its numbers mean little. */
const size = args.quick
  ? {
      keys: 5_000,
      rounds: 2,
      warmup: 1,
      roundMs: 40,
      clusterRounds: 2,
      weighed: 20_000,
      latencyMs: 60,
      latencyRounds: 1,
    }
  : {
      keys: 100_000,
      rounds: 36,
      warmup: 3,
      roundMs: 200,
      clusterRounds: 20,
      weighed: 1_000_000,
      latencyMs: 1_000,
      latencyRounds: 4,
    };
const inFlight = 256;
const moderate = { inFlight: 32, perSecond: 20_000 };

/** Every key once per lap, not in the order of their creation. */
const order: Int32Array = Int32Array.from({ length: size.keys }, (_, i) => (i * 7919) % size.keys);

/** 17 characters, so that all keys in the server have 30. */
const renderUser = (number: number): string => `user-${String(order[number % size.keys]).padStart(12, "0")}`;

const idleLimit = 60_000;
/** Nothing expires during a run. */
const workload = { renderUser, perMinute: idleLimit, lifeMs: 300_000 };

type Check = (number: number) => Promise<Decision>;

/** A limiter on these counters, and its full path: a fresh request with a fresh subject, the complete decision. */
function checkBy(counters: RedisCounters, id: string, ...windows: readonly string[]): Check {
  return checkAs(counters, "gcra", id, windows);
}

function checkAs(counters: RedisCounters, algorithm: string, id: string, windows: readonly string[]): Check {
  const limits = [{ by: ["user"], algorithm, windows }];
  const limiter = createLimiter({
    policies: { policies: [{ id, match: { endpoint: "/v1/**", method: "GET" }, limits, on_failure: "open" }] },
    counters,
  });
  return (number) =>
    limiter.check({ dimensions: { user: renderUser(number), endpoint: "/v1/resource-5/17", method: "GET" } });
}

const isFirstLap = (number: number): boolean => number < size.keys;

/** Decided by the counters, and found as new: at this rate a key is idle again after a millisecond. */
const isIdle = ({ allowed, used, degraded }: Decision): boolean => allowed && used === 1 && degraded === undefined;

/** A unit takes 864 s, which is not over when a key is checked again. */
const isBehind = ({ allowed, used, degraded }: Decision, number: number): boolean =>
  allowed && degraded === undefined && (used! > 1 || isFirstLap(number));

const isAllowed = ({ allowed, degraded }: Decision): boolean => allowed && degraded === undefined;

const isDenied = ({ allowed, degraded }: Decision, number: number): boolean =>
  degraded === undefined && (!allowed || isFirstLap(number));

/** Checks never time out here: on a busy machine, timeouts would turn waiting into answers that cost nothing. */
const patient = { deadlineMs: 10_000 };

const names = {
  ours: "sluice",
  behind: "sluice, counters ahead of now",
  denied: "sluice, denied",
  several: "sluice, three windows",
  fixed: "sluice, a fixed window",
  sliding: "sluice, a sliding window",
  single: "one EVALSHA per check",
  flexible: "rate-limiter-flexible",
  rateLimitRedis: "rate-limit-redis",
  oneSlot: "sluice, one slot per check",
  crossSlot: "sluice, two slots per check",
} as const;

interface ServerMeasurements {
  readonly rounds: ServerRounds;
  readonly checksPerCall: number;
  readonly key: string;
  readonly bytesPerKey: number;
  readonly latencies: {
    readonly inFlight: Readonly<Record<"ours" | "single", Latencies>>;
    readonly open: Readonly<Record<"ours" | "single", Latencies>>;
  };
}

async function measureServer(server: TestServer): Promise<ServerMeasurements> {
  const counters = new RedisCounters({ servers: server.url, ...patient });
  const clients = await Promise.all(Array.from({ length: 3 }, () => connect(server.url)));
  try {
    await counters.connected();
    const check = checkBy(counters, "idle", `${idleLimit}/m`);
    const single = await singleEvalsha(clients[0]!, workload);
    const ours = createAsker(names.ours, check, isIdle);
    const askers: readonly Asker[] = [
      ours,
      createAsker(names.behind, checkBy(counters, "behind", "100/d"), isBehind),
      createAsker(names.denied, checkBy(counters, "denied", "1/d"), isDenied),
      createAsker(names.several, checkBy(counters, "several", "1000/s", `${idleLimit}/m`, "10M/h"), isIdle),
      createAsker(names.fixed, checkAs(counters, "fixed_window", "fixed", ["10M/h"]), isAllowed),
      createAsker(names.sliding, checkAs(counters, "sliding_window", "sliding", ["10M/h"]), isAllowed),
      createAsker(names.single, single, ({ allowed }) => allowed),
      createAsker(
        names.flexible,
        rateLimiterFlexible(clients[1]!, workload),
        ({ remainingPoints }) => remainingPoints > 0,
      ),
      createAsker(
        names.rateLimitRedis,
        await rateLimitRedis(clients[2]!, workload),
        ({ totalHits }) => totalHits < idleLimit,
      ),
    ];
    for (const asker of askers) await askThrough(asker, 0, size.keys, inFlight);
    const rounds = await interleaveOnServers(askers, [server], { ...size, inFlight, from: size.keys });

    const before = counters.stats;
    await askThrough(ours, 0, size.keys, inFlight);
    const checksPerCall = perCall(before, counters.stats);
    const latencies = await measureLatencies(check, single);
    return { rounds, checksPerCall, latencies, ...(await weigh(server, counters)) };
  } finally {
    await counters.close();
    for (const client of clients) client.destroy();
  }
}

function perCall(before: RedisCountersStats, after: RedisCountersStats): number {
  return (after.questions - before.questions) / (after.calls - before.calls);
}

async function measureLatencies(
  check: Check,
  single: (number: number) => Promise<unknown>,
): Promise<ServerMeasurements["latencies"]> {
  const found = {
    inFlight: { ours: [] as number[], single: [] as number[] },
    open: { ours: [] as number[], single: [] as number[] },
  };
  const asks = { ours: check, single };
  let from = 0;
  for (let round = 0; round < size.latencyRounds; round++) {
    for (const who of ["ours", "single"] as const) {
      const options = { ...moderate, from, forMs: size.latencyMs };
      // Not spread into the arguments of a push: there are too many.
      for (const ms of await closedLoop(asks[who], options)) found.inFlight[who].push(ms);
      for (const ms of await openLoop(asks[who], options)) found.open[who].push(ms);
    }
    from += size.keys / 2;
  }
  return found;
}

/** The server's bytes per counter, all of them alive and with an expiry; and an example of a key. */
async function weigh(server: TestServer, counters: RedisCounters): Promise<{ bytesPerKey: number; key: string }> {
  await server.command("FLUSHALL", "SYNC");
  const limits = [{ by: ["user"], algorithm: "gcra", windows: [`${idleLimit}/m`] }];
  const limiter = createLimiter({ policies: { policies: [{ id: "idle", limits, on_failure: "open" }] }, counters });
  const check: Check = (number) => limiter.check({ dimensions: { user: `user-${String(number).padStart(12, "0")}` } });
  const asker = createAsker("weighing", check, isIdle);
  // The memory of a connection under load is included before and after.
  await askThrough(asker, 0, 1000, inFlight);
  await server.command("FLUSHALL", "SYNC");
  const before = await usedBytes(server);
  await askThrough(asker, 0, size.weighed, inFlight);
  const bytesPerKey = ((await usedBytes(server)) - before) / size.weighed;
  const [counterCount, key] = await Promise.all([server.command("DBSIZE"), server.command("RANDOMKEY")]);
  if (counterCount !== size.weighed) throw new Error(`${counterCount} counters instead of ${size.weighed}`);
  return { bytesPerKey, key: String(key) };
}

async function usedBytes(server: TestServer): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(String(await server.command("INFO", "memory")))?.[1]);
}

interface ClusterMeasurements {
  readonly rounds: ServerRounds;
  readonly checksPerCall: { readonly oneSlot: number; readonly crossSlot: number };
}

async function measureCluster(cluster: TestCluster): Promise<ClusterMeasurements> {
  const servers = `redis+cluster://${cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",")}`;
  const counters = new RedisCounters({ servers, ...patient });
  try {
    await counters.connected();
    const oneSlot = createAsker(names.oneSlot, checkBy(counters, "idle", `${idleLimit}/m`), isIdle);
    const crossSlot = createAsker(names.crossSlot, checkAcross(counters), isIdle);
    await askThrough(oneSlot, 0, size.keys, inFlight);
    const options = { ...size, rounds: size.clusterRounds, inFlight, from: size.keys };
    const rounds = await interleaveOnServers([oneSlot, crossSlot], cluster.nodes, options);
    const start = counters.stats;
    await askThrough(oneSlot, 0, size.keys / 5, inFlight);
    const between = counters.stats;
    await askThrough(crossSlot, 0, size.keys / 5, inFlight);
    const end = counters.stats;
    return { rounds, checksPerCall: { oneSlot: perCall(start, between), crossSlot: perCall(between, end) } };
  } finally {
    await counters.close();
  }
}

/** Two limits whose counters lie in different slots, but for one request in 64. */
function checkAcross(counters: RedisCounters): Check {
  const windows = [`${idleLimit}/m`];
  const limits = [
    { by: ["tenant"], algorithm: "gcra", windows },
    { by: ["ip"], algorithm: "gcra", windows },
  ];
  const limiter = createLimiter({
    policies: { policies: [{ id: "across", match: { endpoint: "/v1/**" }, limits, on_failure: "open" }] },
    counters,
  });
  return (number) => {
    const n = order[number % size.keys]!;
    const ip = `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;
    return limiter.check({ dimensions: { tenant: `tenant-${n}`, ip, endpoint: "/v1/resource-5/17" } });
  };
}

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

function renderPercentiles(latencies: Latencies): { p50_ms: number; p99_ms: number; p999_ms: number } {
  return {
    p50_ms: rounded(percentile(latencies, 0.5), 3),
    p99_ms: rounded(percentile(latencies, 0.99), 3),
    p999_ms: rounded(percentile(latencies, 0.999), 3),
  };
}

function renderCosts(rounds: ServerRounds, name: string) {
  return {
    checks_per_s: Math.round(findMedian(rounds, name, perSecond)),
    redis_us_per_check: rounded(findMedian(rounds, name, serverUsPerCheck), 3),
    node_us_per_check: rounded(findMedian(rounds, name, nodeUsPerCheck), 3),
  };
}

function renderResult(one: ServerMeasurements, cluster: ClusterMeasurements) {
  const { rounds, latencies } = one;
  const faster = (than: string): number => rounded(medianRatio(rounds, names.ours, than, perSecond), 2);
  return {
    suite: "redis",
    ...renderCosts(rounds, names.ours),
    checks_per_call: rounded(one.checksPerCall, 1),
    bytes_per_key: rounded(one.bytesPerKey, 1),
    ...renderPercentiles(latencies.open.ours),
    in_flight_32: renderPercentiles(latencies.inFlight.ours),
    behind: renderCosts(rounds, names.behind),
    denied: renderCosts(rounds, names.denied),
    three_windows: renderCosts(rounds, names.several),
    fixed_window: renderCosts(rounds, names.fixed),
    sliding_window: renderCosts(rounds, names.sliding),
    cross_slot: {
      ...renderCosts(cluster.rounds, names.crossSlot),
      checks_per_call: rounded(cluster.checksPerCall.crossSlot, 1),
    },
    cluster: {
      ...renderCosts(cluster.rounds, names.oneSlot),
      checks_per_call: rounded(cluster.checksPerCall.oneSlot, 1),
    },
    single_evalsha: {
      ...renderCosts(rounds, names.single),
      ...renderPercentiles(latencies.open.single),
      in_flight_32: renderPercentiles(latencies.inFlight.single),
    },
    ratio: {
      throughput_vs_single_evalsha: faster(names.single),
      fixed_window_redis_cpu_vs_gcra: rounded(medianRatio(rounds, names.fixed, names.ours, serverUsPerCheck), 2),
      sliding_window_redis_cpu_vs_gcra: rounded(medianRatio(rounds, names.sliding, names.ours, serverUsPerCheck), 2),
      redis_cpu_vs_single_evalsha: rounded(medianRatio(rounds, names.ours, names.single, serverUsPerCheck), 3),
      throughput_vs_rate_limiter_flexible: faster(names.flexible),
      throughput_vs_rate_limit_redis: faster(names.rateLimitRedis),
    },
  };
}

function printTable(rounds: ServerRounds): void {
  console.log(`  ${"".padEnd(32)} ${"checks/s".padStart(10)} ${"server µs".padStart(10)} ${"Node µs".padStart(10)}`);
  for (const name of rounds.keys()) {
    const { checks_per_s, redis_us_per_check, node_us_per_check } = renderCosts(rounds, name);
    const cells = [checks_per_s.toLocaleString("en"), redis_us_per_check.toFixed(2), node_us_per_check.toFixed(2)];
    console.log(`  ${name.padEnd(32)} ${cells.map((cell) => cell.padStart(10)).join(" ")}`);
  }
}

function printLatencies(name: string, { p50_ms, p99_ms, p999_ms }: ReturnType<typeof renderPercentiles>): void {
  console.log(
    `  ${name.padEnd(44)} p50 ${p50_ms.toFixed(2)} ms, p99 ${p99_ms.toFixed(2)} ms, p99.9 ${p999_ms.toFixed(2)} ms`,
  );
}

function print(
  flavor: Flavor,
  one: ServerMeasurements,
  cluster: ClusterMeasurements,
  result: ReturnType<typeof renderResult>,
): void {
  const keys = size.keys.toLocaleString("en");
  console.log(
    `one ${flavor} server, ${keys} keys of each, ${inFlight} checks in flight, in turns; µs are CPU time per check`,
  );
  printTable(one.rounds);
  console.log(`  ${one.checksPerCall.toFixed(1)} checks of sluice travel in one call`);
  for (const [name, value] of Object.entries(result.ratio)) console.log(`  ${name.padEnd(44)} ${value}`);
  console.log("latency of a check");
  const open = `${moderate.perSecond.toLocaleString("en")} checks/s at random`;
  const closed = `${moderate.inFlight} checks in flight`;
  printLatencies(`${names.ours}, ${open}`, result);
  printLatencies(`${names.single}, ${open}`, result.single_evalsha);
  printLatencies(`${names.ours}, ${closed}`, result.in_flight_32);
  printLatencies(`${names.single}, ${closed}`, result.single_evalsha.in_flight_32);
  const { key, bytesPerKey } = one;
  console.log(
    `a counter takes ${bytesPerKey.toFixed(1)} bytes of the server at ${size.weighed.toLocaleString("en")}, its key, such as ${key}, of ${key.length} bytes and its expiry included`,
  );
  console.log(
    `a ${flavor} cluster of 3 shards, ${inFlight} checks in flight, in turns; server µs of all shards together`,
  );
  printTable(cluster.rounds);
  const { oneSlot, crossSlot } = cluster.checksPerCall;
  console.log(`  ${oneSlot.toFixed(1)} and ${crossSlot.toFixed(1)} checks travel in one call`);
  for (const note of notes) console.log(note);
}

const notes = [
  "the work of each per check, over connections of node-redis that send concurrent commands in one write:",
  `  ${names.ours}: check() of a limiter with one policy, one GCRA window of ${idleLimit}/m that finds its counter idle; the`,
  "    complete decision. Ahead of now: 100/d, whose counters are added to. Denied: 1/d, used up.",
  `  ${names.single}: the same algorithm, precision and clock in a script for one key, with a plain decision around it.`,
  `  ${names.flexible}: RateLimiterRedis.consume, a fixed window; it sends its script in full with every check.`,
  `  ${names.rateLimitRedis}: RedisStore.increment, a fixed window, by EVALSHA; without express-rate-limit around it.`,
  "  Two slots: limits by tenant and by ip, taken one after the other, the first so that it can be given back: both or none are charged.",
  "redis_cpu_vs_single_evalsha is our share of its CPU time, and so are those of windows: less is better. Other ratios are speedups.",
  "latency at random counts from when a check was due.",
];

function flavorFrom(text: string): Flavor {
  const flavor = flavors.find((one) => one === text);
  if (flavor !== undefined) return flavor;
  console.error(`There is no flavor "${text}"; write --flavor ${flavors.join(" or --flavor ")}.`);
  process.exit(2);
}

async function main(): Promise<void> {
  const flavor = flavorFrom(args.flavor);
  const server = await startServer({ flavor });
  const one = await measureServer(server).finally(() => server.close());
  const cluster = await startCluster({ flavor, shards: 3 });
  const across = await measureCluster(cluster).finally(() => cluster.close());
  const result = renderResult(one, across);
  print(flavor, one, across, result);
  if (args.json) console.log(JSON.stringify(result));
}

await main();
process.exit(0);
