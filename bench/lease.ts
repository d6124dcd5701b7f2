// npm run bench -- lease [--json] [--quick] [--whale subject|tier|policy] [--in-flight 16]: how fast a node decides by leases, how little
// of that the store sees, and by how much limits are exceeded; beside the same limiter without leases, and another one on the same server.
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

/** How much is done. A quick run shows that everything works; its numbers say little. */
const size = args.quick
  ? {
      steady: { warmupMs: 300, windows: 2, windowMs: 100 },
      turns: { rounds: 1, leadMs: 50, forMs: 50 },
      others: { settleMs: 100, rounds: 1, leadMs: 50, forMs: 50 },
      scale: { nodes: [1, 2], leadMs: 200, forMs: 100, phases: [...calmAndFlood(100, 200), ...calmAndFlood(100, 100)] },
    }
  : {
      // Who is asked about once in a few seconds is not leased sooner.
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
 * How many checks wait for their decision at most. A process that makes 16 000 checks a second on counters a millisecond away has 16 of
 * them on their way, and one that only checks, as fast as it can, some hundreds. How much leases save depends on it, since checks that wait
 * together travel together: so against exact counters all of these are measured.
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

/** One node that does nothing else, after it has found out who is hot. */
async function measureSteady(node: BenchNode): Promise<Steady> {
  const { warmupMs, windows, windowMs } = size.steady;
  await driveNode(node, warmupMs);
  const { figures: before } = await node.order({ order: "tell" }, "figures");
  const driven: Driven[] = [];
  for (let i = 0; i < windows; i++) driven.push(await driveNode(node, windowMs));
  const { figures: after } = await node.order({ order: "tell" }, "figures");
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
      // Each question about the whale as a call of its own, though many travel together.
      callsPer1000: ((whaleTakes + after.whaleLeases - before.whaleLeases) / ofWhale) * 1000,
    },
    localUs: driven.flatMap(({ localUs }) => localUs),
    leases: after.leases,
  };
}

/** What a contender did in one round, and the processor time that the store used for it. */
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
 * Measures contenders in turns, so that whatever else the machine does falls on all of them alike. Each turn begins with a moment
 * that is not counted. Each contender has a process of its own: what leases do while nobody asks is not charged to others.
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

/** Leases against exact where fewer or more checks are in flight, by how many. */
async function measureOthers(
  server: TestServer,
  nodes: ReadonlyMap<Kind, BenchNode>,
): Promise<ReadonlyMap<number, Turns>> {
  const contenders = new Map([...nodes].filter(([kind]) => kind !== "flexible"));
  const byInFlight = new Map<number, Turns>();
  for (const atOnce of otherInFlight) {
    // Leases fit themselves to what is asked for now.
    await driveNode(nodes.get("leased")!, size.others.settleMs, atOnce);
    byInFlight.set(atOnce, await measureInTurns(server, contenders, size.others, atOnce));
  }
  return byInFlight;
}

const perCpuSecondOfBoth = ({ decisions, cpuUs, storeUs }: Turn): number => (decisions / (cpuUs + storeUs)) * 1e6;

/** How many times another's leases do: the median of the ratios of their rounds. */
function ratio(turns: Turns, than: Kind, quantity: (turn: Turn) => number = perCpuSecond): number {
  const theirs = turns.get(than)!;
  return median(turns.get("leased")!.map((turn, i) => quantity(turn) / quantity(theirs[i]!)));
}

function medianOf(turns: Turns, kind: Kind, quantity: (turn: Turn) => number): number {
  return median(turns.get(kind)!.map(quantity));
}

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

/** The counter that came nearest to its bound, and the least that was admitted of what a limit allows. */
function judge(scaled: readonly Scaled[]): { nearest: CounterVerdict; admittedShare: number } {
  const counters = scaled.flatMap((one) => one.counters);
  const nearness = ({ stated, worstSeen }: CounterVerdict): number => worstSeen / stated;
  return {
    nearest: counters.reduce((one, other) => (nearness(other) > nearness(one) ? other : one)),
    admittedShare: Math.min(...counters.map((one) => one.admittedShare)),
  };
}

function overshootOf({ stated, worstSeen }: CounterVerdict): { stated: number; worst_seen: number } {
  return { stated, worst_seen: worstSeen };
}

function resultOf({ steady, turns, others }: Alone, scaled: readonly Scaled[]) {
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
    overshoot: overshootOf(nearest),
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
          leased_per_cpu_s: Math.round(medianOf(those, "leased", perCpuSecond)),
          exact_per_cpu_s: Math.round(medianOf(those, "exact", perCpuSecond)),
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
        overshoot: overshootOf(verdict.nearest),
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

function print({ steady, turns }: Alone, result: ReturnType<typeof resultOf>): void {
  const count = (value: number): string => Math.round(value).toLocaleString("en");
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  console.log(`one node over one Valkey, ${inFlight} checks in flight, half of them the whale's; nothing is denied`);
  console.log(
    `  ${count(steady.decisionsPerCpuSecond)} decisions per second of its processor time, ${count(steady.decisionsPerSecond)} per second`,
  );
  console.log(
    `  decided here: ${percent(steady.localShare)} of all, ${percent(steady.whale.localShare)} of the whale's, with ${count(steady.leases)} leases`,
  );
  console.log(
    `  calls to the store per 1 000 decisions: ${result.store_calls_per_1000}; of the whale's: ${result.whale.store_calls_per_1000}`,
  );
  console.log(`  a decision here takes ${result.p50_us} µs (p50), ${result.p99_us} µs (p99)`);
  console.log("the same requests, in turns: decisions per second of processor time");
  console.log(`  ${"".padEnd(36)}${["of the node", "and the store"].map((head) => head.padStart(15)).join("")}`);
  for (const kind of turns.keys()) {
    const cells = [perCpuSecond, perCpuSecondOfBoth].map((quantity) =>
      count(medianOf(turns, kind, quantity)).padStart(15),
    );
    console.log(`  ${titles[kind].padEnd(36)}${cells.join("")}`);
  }
  for (const than of ["exact", "flexible"] as const) {
    const cells = [perCpuSecond, perCpuSecondOfBoth].map((quantity) => `${ratio(turns, than, quantity).toFixed(2)} ×`);
    console.log(`  ${`by leases, against ${than}`.padEnd(36)}${cells.map((cell) => cell.padStart(15)).join("")}`);
  }
  console.log("leases against exact, by how many checks are in flight");
  for (const [atOnce, times] of Object.entries(result.vs_exact_by_in_flight)) {
    const cells = [times.node, times.with_store].map((one) => `${one.toFixed(2)} ×`.padStart(15));
    const perSeconds = `${count(times.leased_per_cpu_s)} against ${count(times.exact_per_cpu_s)} of the node`;
    console.log(`  ${atOnce.padEnd(36)}${cells.join("")}   ${perSeconds}`);
  }
  console.log("several nodes over one Valkey, each in a process of its own");
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
  "everybody is 100 000 subjects at 60 000/s each, asked for by Zipf's law with exponent 1, and a whale at 1 000 000/s, under one policy.",
  "a check is asked of the public check(), with a fresh request and subject. In a turn of the event loop there are up to 256 of them, of which as",
  "  many as are in flight at one moment.",
  "the store's calls for the whale are questions about its counter, each counted as a call of its own, though many travel together.",
  "a decision here is timed alone, from asking until its promise is settled, one in 64.",
  "exceeded by: at a fiftieth of the limits, floods of three times as much and calms between; in the worst interval of the counter that",
  "  came nearest to what its policy states. Admitted: of what the limit allows in a flood of 2 s, of the counter that was admitted least.",
];

function whaleWayFrom(text: string): WhaleWay {
  const way = whaleWays.find((one) => one === text);
  if (way !== undefined) return way;
  console.error(`The whale has its limit from a ${whaleWays.join(", a ")}; "${text}" is none of them.`);
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

/** The same requests for each. Leases are measured alone first. */
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
  const result = resultOf(alone, scaled);
  print(alone, result);
  if (args.json) console.log(JSON.stringify(result));
} finally {
  await server.close();
}
process.exit(0);
