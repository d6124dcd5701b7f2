// npm run bench -- lease [--json] [--quick] [--whale subject|tier|policy] [--in-flight 16]: how fast a node decides by leases, how few
// calls reach the store, and by how much limits are exceeded; compared with the same limiter without leases, and another one on the same server.
import { parseArgs } from "node:util";
import { startServer, type TestServer } from "@sluice/test-servers";
import type { Kind } from "./lease/contenders.ts";
import type { Driven } from "./lease/drive.ts";
import { type CounterVerdict, measureScaling, mostPerSecond, type Scaled } from "./lease/scale.ts";
import { type BenchNode, startNode } from "./lease/start-node.ts";
import { type WhaleWay, whaleWays } from "./lease/workload.ts";
import { median } from "./measure/interleave.ts";
import { serversCpuUs } from "./measure/interleave-on-servers.ts";
import { percentile } from "./measure/latencies.ts";

const { values: args } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    whale: { type: "string", default: "subject" },
    "in-flight": { type: "string", default: "16" },
  },
});

/** The amount of work. A quick run shows that everything works; its numbers mean little. */
const size = args.quick
  ? {
      steady: { warmupMs: 300, windows: 2, windowMs: 100 },
      turns: { rounds: 1, leadMs: 50, forMs: 50 },
      others: { settleMs: 100, rounds: 1, leadMs: 50, forMs: 50 },
      scale: { nodes: [1, 2], leadMs: 200, forMs: 100, phases: [...calmAndFlood(100, 200), ...calmAndFlood(100, 100)] },
    }
  : {
      // A subject that is checked once in a few seconds is not leased sooner.
      steady: { warmupMs: 20_000, windows: 10, windowMs: 1000 },
      turns: { rounds: 10, leadMs: 300, forMs: 500 },
      others: { settleMs: 6000, rounds: 8, leadMs: 300, forMs: 500 },
      scale: {
        nodes: [1, 2, 4, 8],
        leadMs: 6000,
        forMs: 1500,
        phases: [
          ...calmAndFlood(600, 2000),
          ...calmAndFlood(400, 250),
          ...calmAndFlood(400, 250),
          ...calmAndFlood(400, 250),
          ...calmAndFlood(400, 250),
        ],
      },
    };
/**
 * The largest number of checks in flight. A process that makes 16 000 checks a second on counters with a latency of a millisecond has 16
 * in flight, and one that only checks, as fast as it can, some hundreds. How much leases save depends on it, since checks that wait
 * together travel together: so all of these are measured against exact counters.
 */
const inFlight = inFlightFrom(args["in-flight"]);
const otherInFlight = [1, 16, 256].filter((count) => count !== inFlight);

/** A third of what the limits allow, so that counters are full while some is leased, and then three times as much. */
function calmAndFlood(calmMs: number, floodMs: number): readonly { forMs: number; demand: number }[] {
  return [
    { forMs: calmMs, demand: 1 / 3 },
    { forMs: floodMs, demand: 3 },
  ];
}

interface Steady {
  readonly decisionsPerCpuSecond: number;
  readonly decisionsPerSecond: number;
  readonly localShare: number;
  readonly callsPer1000: number;
  readonly whale: { readonly localShare: number; readonly callsPer1000: number };
  readonly localUs: readonly number[];
  readonly leases: number;
}

const perCpuSecond = ({ decisions, cpuUs }: Driven): number => (decisions / cpuUs) * 1e6;
const perSecond = ({ decisions, wallMs }: Driven): number => (decisions / wallMs) * 1000;

async function driveNode(node: BenchNode, forMs: number, atOnce = inFlight): Promise<Driven> {
  return (await node.order({ order: "drive", forMs, mostPerSecond, inFlight: atOnce }, "driven")).driven;
}

/** One node that does nothing else, after it has learned which subjects are hot. */
async function measureSteady(node: BenchNode): Promise<Steady> {
  const { warmupMs, windows, windowMs } = size.steady;
  await driveNode(node, warmupMs);
  const { usage: before } = await node.order({ order: "report" }, "usage");
  const driven: Driven[] = [];
  for (let i = 0; i < windows; i++) driven.push(await driveNode(node, windowMs));
  const { usage: after } = await node.order({ order: "report" }, "usage");
  const decisions = driven.reduce((sum, one) => sum + one.decisions, 0);
  const ofWhale = after.whaleDecisions - before.whaleDecisions;
  const whaleTakes = after.whaleTakes - before.whaleTakes;
  return {
    decisionsPerCpuSecond: median(driven.map(perCpuSecond)),
    decisionsPerSecond: median(driven.map(perSecond)),
    localShare: (after.local - before.local) / decisions,
    callsPer1000: ((after.calls - before.calls) / decisions) * 1000,
    whale: {
      localShare: 1 - whaleTakes / ofWhale,
      // Counts each request about the whale as a separate call, though many travel together.
      callsPer1000: ((whaleTakes + after.whaleLeases - before.whaleLeases) / ofWhale) * 1000,
    },
    localUs: driven.flatMap(({ localUs }) => localUs),
    leases: after.leases,
  };
}

/** A contender's work in one round, and the CPU time that the store used for it. */
interface Turn extends Driven {
  readonly storeUs: number;
}

type Turns = ReadonlyMap<Kind, readonly Turn[]>;

interface TurnsSize {
  readonly rounds: number;
  readonly leadMs: number;
  readonly forMs: number;
}

/**
 * Measures contenders in turns, so that other load on the machine affects all of them equally. Each turn begins with a moment
 * that is not counted. Each contender has a separate process, so that idle work of leases is not charged to others.
 */
async function measureInTurns(
  server: TestServer,
  nodes: ReadonlyMap<Kind, BenchNode>,
  { rounds, leadMs, forMs }: TurnsSize,
  atOnce: number,
): Promise<Turns> {
  const turns = new Map<Kind, Turn[]>([...nodes.keys()].map((kind) => [kind, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [kind, node] of nodes) {
      await driveNode(node, leadMs, atOnce);
      const storeBeforeUs = await serversCpuUs([server]);
      const driven = await driveNode(node, forMs, atOnce);
      const storeUs = (await serversCpuUs([server])) - storeBeforeUs;
      turns.get(kind)!.push({ ...driven, storeUs });
    }
  }
  return turns;
}

/** Leases against exact counters, by number of checks in flight. */
async function measureOthers(
  server: TestServer,
  nodes: ReadonlyMap<Kind, BenchNode>,
): Promise<ReadonlyMap<number, Turns>> {
  const contenders = new Map([...nodes].filter(([kind]) => kind !== "flexible"));
  const byInFlight = new Map<number, Turns>();
  for (const atOnce of otherInFlight) {
    // Leases adapt to the current load.
    await driveNode(nodes.get("leased")!, size.others.settleMs, atOnce);
    byInFlight.set(atOnce, await measureInTurns(server, contenders, size.others, atOnce));
  }
  return byInFlight;
}

const perCpuSecondOfBoth = ({ decisions, cpuUs, storeUs }: Turn): number => (decisions / (cpuUs + storeUs)) * 1e6;

/** How many times as much leases achieve as another: the median of the ratios of their rounds. */
function ratio(turns: Turns, than: Kind, quantity: (turn: Turn) => number = perCpuSecond): number {
  const theirs = turns.get(than)!;
  return median(turns.get("leased")!.map((turn, i) => quantity(turn) / quantity(theirs[i]!)));
}

function findMedian(turns: Turns, kind: Kind, quantity: (turn: Turn) => number): number {
  return median(turns.get(kind)!.map(quantity));
}

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

/** The counter that came nearest to its bound, and the smallest admitted share of a limit. */
function judge(scaled: readonly Scaled[]): { nearest: CounterVerdict; admittedShare: number } {
  const counters = scaled.flatMap((one) => one.counters);
  const nearness = ({ stated, worstSeen }: CounterVerdict): number => worstSeen / stated;
  return {
    nearest: counters.reduce((one, other) => (nearness(other) > nearness(one) ? other : one)),
    admittedShare: Math.min(...counters.map((one) => one.admittedShare)),
  };
}

function renderOvershoot({ stated, worstSeen }: CounterVerdict): { stated: number; worst_seen: number } {
  return { stated, worst_seen: worstSeen };
}

function renderResult({ steady, turns, others }: Alone, scaled: readonly Scaled[]) {
  const { nearest, admittedShare } = judge(scaled.filter(({ kind }) => kind === "leased"));
  return {
    suite: "lease",
    in_flight: inFlight,
    decisions_per_cpu_s: Math.round(steady.decisionsPerCpuSecond),
    store_calls_per_1000: rounded(steady.callsPer1000, 2),
    whale: {
      local_share: rounded(steady.whale.localShare, 4),
      store_calls_per_1000: rounded(steady.whale.callsPer1000, 2),
    },
    local_share: rounded(steady.localShare, 4),
    p50_us: rounded(percentile(steady.localUs, 0.5), 2),
    p99_us: rounded(percentile(steady.localUs, 0.99), 2),
    overshoot: renderOvershoot(nearest),
    admitted_share: rounded(admittedShare, 4),
    ratio: {
      vs_exact: rounded(ratio(turns, "exact"), 2),
      vs_rate_limiter_flexible_redis: rounded(ratio(turns, "flexible"), 2),
    },
    vs_exact_by_in_flight: Object.fromEntries(
      [[inFlight, turns] as const, ...others].map(([atOnce, those]) => [
        atOnce,
        {
          node: rounded(ratio(those, "exact"), 2),
          with_store: rounded(ratio(those, "exact", perCpuSecondOfBoth), 2),
          leased_per_cpu_s: Math.round(findMedian(those, "leased", perCpuSecond)),
          exact_per_cpu_s: Math.round(findMedian(those, "exact", perCpuSecond)),
        },
      ]),
    ),
    scaling: scaled.map((one) => {
      const verdict = judge([one]);
      return {
        nodes: one.nodes,
        leases: one.kind === "leased",
        decisions_per_s: Math.round(one.decisionsPerSecond),
        decisions_per_cpu_s: Math.round(one.decisionsPerCpuSecond),
        store_calls_per_decision: rounded(one.callsPerDecision, 5),
        store_us_per_decision: rounded(one.serverUsPerDecision, 3),
        overshoot: renderOvershoot(verdict.nearest),
        admitted_share: rounded(verdict.admittedShare, 4),
      };
    }),
  };
}

const titles: Readonly<Record<Kind, string>> = {
  leased: "sluice, by leases",
  exact: "sluice, every check at the store",
  flexible: "rate-limiter-flexible",
};

function print({ steady, turns }: Alone, result: ReturnType<typeof renderResult>): void {
  const count = (value: number): string => Math.round(value).toLocaleString("en");
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  console.log(`one node over one Valkey, ${inFlight} checks in flight, half of them the whale's; nothing is denied`);
  console.log(
    `  ${count(steady.decisionsPerCpuSecond)} decisions per second of its CPU time, ${count(steady.decisionsPerSecond)} per second`,
  );
  console.log(
    `  decided locally: ${percent(steady.localShare)} of all, ${percent(steady.whale.localShare)} of the whale's, with ${count(steady.leases)} leases`,
  );
  console.log(
    `  calls to the store per 1 000 decisions: ${result.store_calls_per_1000}; of the whale's: ${result.whale.store_calls_per_1000}`,
  );
  console.log(`  a local decision takes ${result.p50_us} µs (p50), ${result.p99_us} µs (p99)`);
  console.log("the same requests, in turns: decisions per second of CPU time");
  console.log(`  ${"".padEnd(36)}${["of the node", "and the store"].map((head) => head.padStart(15)).join("")}`);
  for (const kind of turns.keys()) {
    const cells = [perCpuSecond, perCpuSecondOfBoth].map((quantity) =>
      count(findMedian(turns, kind, quantity)).padStart(15),
    );
    console.log(`  ${titles[kind].padEnd(36)}${cells.join("")}`);
  }
  for (const than of ["exact", "flexible"] as const) {
    const cells = [perCpuSecond, perCpuSecondOfBoth].map((quantity) => `${ratio(turns, than, quantity).toFixed(2)} ×`);
    console.log(`  ${`by leases, against ${than}`.padEnd(36)}${cells.map((cell) => cell.padStart(15)).join("")}`);
  }
  console.log("leases against exact, by number of checks in flight");
  for (const [atOnce, times] of Object.entries(result.vs_exact_by_in_flight)) {
    const cells = [times.node, times.with_store].map((one) => `${one.toFixed(2)} ×`.padStart(15));
    const perSeconds = `${count(times.leased_per_cpu_s)} against ${count(times.exact_per_cpu_s)} of the node`;
    console.log(`  ${atOnce.padEnd(36)}${cells.join("")}   ${perSeconds}`);
  }
  console.log("several nodes over one Valkey, each in a separate process");
  const heads = ["decisions/s", "per CPU s", "calls/decision", "store µs", "exceeded by", "stated", "admitted"];
  console.log(`  ${"nodes".padEnd(16)}${heads.map((head) => head.padStart(15)).join("")}`);
  for (const one of result.scaling) {
    const cells = [
      ...[count(one.decisions_per_s), count(one.decisions_per_cpu_s)],
      ...[one.store_calls_per_decision.toFixed(4), one.store_us_per_decision.toFixed(3)],
      ...[count(one.overshoot.worst_seen), count(one.overshoot.stated), percent(one.admitted_share)],
    ];
    const title = `${one.nodes}, ${one.leases ? "leases" : "exact"}`;
    console.log(`  ${title.padEnd(16)}${cells.map((cell) => cell.padStart(15)).join("")}`);
  }
  for (const note of notes) console.log(note);
}

const notes = [
  "subjects: 100 000 at 60 000/s each, distributed by Zipf's law with exponent 1, and a whale at 1 000 000/s, under one policy.",
  "a check is a call of the public check(), with a fresh request and subject. A turn of the event loop makes up to 256 of them, while no more",
  "  than the given number are in flight.",
  "the store's calls for the whale are requests about its counter, each counted as a separate call, though many travel together.",
  "a local decision is timed alone, from the call until its promise is settled, one in 64.",
  "exceeded by: at a fiftieth of the limits, floods of three times as much and calms between; in the worst interval of the counter that",
  "  came nearest to its policy's stated bound. Admitted: share of the limit in a flood of 2 s, of the counter with the lowest share.",
];

function whaleWayFrom(text: string): WhaleWay {
  const way = whaleWays.find((one) => one === text);
  if (way !== undefined) return way;
  console.error(`--whale is one of ${whaleWays.join(", ")}, not "${text}".`);
  process.exit(2);
}

function inFlightFrom(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= 10_000) return count;
  console.error(`--in-flight is a whole number from 1 to 10000, not "${text}".`);
  process.exit(2);
}

async function openNode(kind: Kind, url: string, way: WhaleWay): Promise<BenchNode> {
  const node = await startNode();
  const everything = { share: 1, burstShare: 1, seed: 1, draws: 2 ** 22 };
  await node.order({ order: "open", kind, url, prefix: kind, way, ...everything }, "done");
  return node;
}

interface Alone {
  readonly steady: Steady;
  readonly turns: Turns;
  readonly others: ReadonlyMap<number, Turns>;
}

/** The same requests for each contender. Leases are measured alone first. */
async function measureAlone(server: TestServer, way: WhaleWay): Promise<Alone> {
  const nodes = new Map<Kind, BenchNode>();
  try {
    const leased = await openNode("leased", server.url, way);
    nodes.set("leased", leased);
    const steady = await measureSteady(leased);
    for (const kind of ["exact", "flexible"] as const) nodes.set(kind, await openNode(kind, server.url, way));
    const turns = await measureInTurns(server, nodes, size.turns, inFlight);
    const others = await measureOthers(server, nodes);
    for (const node of nodes.values()) await node.order({ order: "close" }, "done");
    return { steady, turns, others };
  } finally {
    for (const node of nodes.values()) node.stop();
  }
}

const way = whaleWayFrom(args.whale);
const server = await startServer({ flavor: "valkey" });
try {
  const alone = await measureAlone(server, way);
  const scaled = await measureScaling(server, { ...size.scale, way, inFlight });
  const result = renderResult(alone, scaled);
  print(alone, result);
  if (args.json) console.log(JSON.stringify(result));
} finally {
  await server.close();
}
process.exit(0);
