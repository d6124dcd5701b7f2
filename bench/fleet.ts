// npm run bench -- fleet [--json] [--quick] [--write]: one, two and four nodes that share a limit on one Valkey through leases, asked over
// gRPC streams: decisions a second of all of them, and µs of CPU for each decision on nodes and server. On a machine with few
// cores the rate does not grow with the nodes; CPU time per decision says what more cores would give.
// --write puts the table into docs/benchmarks.md.
import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { startServer } from "@sluice/test-servers";
import { type FleetResult, renderFleet } from "./fleet/render-fleet.ts";
import { median } from "./measure/interleave.ts";
import { writeSection } from "./measure/write-section.ts";
import { writeChecks } from "./service/checks-on-disk.ts";
import { loadByH2load } from "./service/load-tools.ts";
import { type Served, startServed } from "./service/start-served.ts";

const { values: args } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
  },
});
/** A quick run shows that everything works; its numbers mean little. */
const size = args.quick ? { rounds: 1, warmup: 1, streams: 4 } : { rounds: 5, warmup: 3, streams: 120 };
const fleets = [1, 2, 4];

const root = path.join(import.meta.dirname, "..");
// Users run compiled code.
execFileSync(path.join(root, "node_modules", ".bin", "tsc"), ["-b", "packages/server"], {
  cwd: root,
  stdio: "inherit",
});

const valkey = await startServer({ flavor: "valkey" });
const files = writeChecks();
const nodes: Served[] = [];

interface Round {
  readonly perSecond: number;
  readonly nodeUs: number;
  readonly valkeyUs: number;
}

/** CPU time that the Valkey has used, in microseconds. */
async function valkeyCpuUs(): Promise<number> {
  const info = String(await valkey.command("INFO", "cpu"));
  const seconds = (name: string): number => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1]);
  return (seconds("used_cpu_user") + seconds("used_cpu_sys")) * 1e6;
}

async function nodesCpuUs(fleet: readonly Served[]): Promise<number> {
  return (await Promise.all(fleet.map((node) => node.used()))).reduce((sum, { cpuUs }) => sum + cpuUs, 0);
}

async function load(fleet: readonly Served[]): Promise<Round> {
  const before = [await nodesCpuUs(fleet), await valkeyCpuUs()] as const;
  const startedMs = performance.now();
  await Promise.all(
    fleet.map(({ ports }) =>
      loadByH2load(`http://127.0.0.1:${ports.grpc}/sluice.v1.RateLimiter/CheckStream`, files.stream, {
        requests: size.streams,
        connections: 2,
        streams: 2,
      }),
    ),
  );
  const seconds = (performance.now() - startedMs) / 1_000;
  const checks = fleet.length * size.streams * files.checksPerStream;
  return {
    perSecond: checks / seconds,
    nodeUs: ((await nodesCpuUs(fleet)) - before[0]) / checks,
    valkeyUs: ((await valkeyCpuUs()) - before[1]) / checks,
  };
}

const rounds = new Map<number, Round[]>(fleets.map((count) => [count, []]));
try {
  for (let i = 0; i < Math.max(...fleets); i++)
    nodes.push(await startServed("sluice", files.policies(), valkey.url, "on"));
  // In turns, so that what else the machine does meets all of them.
  for (let round = 0; round < size.warmup + size.rounds; round++) {
    for (const count of fleets) {
      const measured = await load(nodes.slice(0, count));
      if (round >= size.warmup) rounds.get(count)!.push(measured);
    }
  }
} finally {
  for (const node of nodes) node.stop();
  await valkey.close();
  files.remove();
}

const rounded = (value: number, digits = 3): number => Number(value.toFixed(digits));
const middle = (count: number, pick: (round: Round) => number): number => median(rounds.get(count)!.map(pick));
const byNodes = Object.fromEntries(
  fleets.map((count) => [
    count,
    {
      checks_per_s: Math.round(middle(count, ({ perSecond }) => perSecond)),
      node_cpu_us_per_check: rounded(middle(count, ({ nodeUs }) => nodeUs)),
      valkey_cpu_us_per_check: rounded(middle(count, ({ valkeyUs }) => valkeyUs)),
    },
  ]),
);
const most = fleets.at(-1)!;
const cores = middle(most, ({ nodeUs, valkeyUs }) => nodeUs + valkeyUs);
const result: FleetResult = {
  suite: "fleet",
  cores: availableParallelism(),
  by_nodes: byNodes,
  cores_for_a_million_per_s: rounded(cores, 2),
};

console.log(`${result.cores} cores, shared by nodes, Valkey and load`);
for (const [count, of] of Object.entries(byNodes))
  console.log(
    `  ${count} node(s) ${`${of.checks_per_s}`.padStart(9)} checks/s   ${of.node_cpu_us_per_check} µs of a node and ` +
      `${of.valkey_cpu_us_per_check} µs of Valkey for each`,
  );
console.log(`  a million a second would keep ${result.cores_for_a_million_per_s} cores of nodes and Valkey busy`);
if (args.write && !args.quick) writeSection("fleet", renderFleet(result));
if (args.json) console.log(JSON.stringify(result));
