import type { TestServer } from "@sluice/test-servers";
import { serversCpuUs } from "../measure/interleave-on-servers.ts";
import type { Kind } from "./contenders.ts";
import type { Driven } from "./drive.ts";
import { type Admissions, worstOvershoot } from "./judge-admissions.ts";
import { nowUs, type Phase } from "./saturate.ts";
import { type BenchNode, startNode } from "./start-node.ts";
import { limits, maxOvershoot, type WhaleWay, whaleNumber } from "./workload.ts";

export interface ScaleOptions {
  readonly nodes: readonly number[];
  readonly leadMs: number;
  readonly forMs: number;
  readonly way: WhaleWay;
  readonly inFlight: number;
  readonly phases: readonly Phase[];
}

/** The result of one counter while more than its limit was requested. */
export interface CounterVerdict {
  readonly number: number;
  /** The policy's stated bound for exceeding the limit, and the actual excess in the worst interval; 0 if there was none. */
  readonly stated: number;
  readonly worstSeen: number;
  /** The admitted share of the limit in the long flood. */
  readonly admittedShare: number;
}

/** The result for a number of nodes, with leases or without. */
export interface Scaled {
  readonly kind: Kind;
  readonly nodes: number;
  readonly decisionsPerSecond: number;
  readonly decisionsPerCpuSecond: number;
  readonly callsPerDecision: number;
  readonly serverUsPerDecision: number;
  readonly counters: readonly CounterVerdict[];
}

/**
 * A fiftieth of the limits, so that two cores can request more than they allow, and a burst of a fifth of a second, so that
 * counters run full in the calm between floods.
 */
const saturatedShare = 1 / 50;
const saturatedBurst = 1 / 5;
const saturatedSubjects = [whaleNumber, 0, 1, 2, 3, 4].map((number) => ({
  number,
  perSecond: (number === whaleNumber ? limits.whale : limits.subject) * saturatedShare,
}));

/** The rate of all nodes together: half of it for the whale, a 24th for the first subject, which is below their limits. */
export const mostPerSecond = 1_400_000;

/** The second phase, in which admissions are compared with the limit. */
const floodAt = 1;

/** The time for orders to arrive before the first phase begins. */
const soonUs = 100_000;

/** Measures each number of nodes over one server, with leases and without. */
export async function measureScaling(server: TestServer, options: ScaleOptions): Promise<readonly Scaled[]> {
  const nodes: BenchNode[] = [];
  const scaled: Scaled[] = [];
  try {
    const most = Math.max(...options.nodes);
    nodes.push(...(await Promise.all(Array.from({ length: most }, () => startNode()))));
    for (const count of options.nodes) {
      for (const kind of ["leased", "exact"] as const)
        scaled.push(await measureOne(server, nodes.slice(0, count), kind, options));
    }
  } finally {
    for (const node of nodes) node.stop();
  }
  return scaled;
}

async function measureOne(
  server: TestServer,
  nodes: readonly BenchNode[],
  kind: Kind,
  { leadMs, forMs, way, inFlight, phases }: ScaleOptions,
): Promise<Scaled> {
  await server.command("FLUSHALL", "SYNC");
  const share = 1 / nodes.length;
  const open = (ofLimits: number, burstShare: number): Promise<unknown> => {
    const ours = { order: "open", kind, url: server.url, prefix: kind, way, share: ofLimits, burstShare } as const;
    return Promise.all(nodes.map((node, seed) => node.order({ ...ours, seed, draws: 2 ** 20 }, "done")));
  };
  const close = (): Promise<unknown> => Promise.all(nodes.map((node) => node.order({ order: "close" }, "done")));

  await open(1, 1);
  const driveAll = (ms: number): Promise<readonly Driven[]> => {
    const driving = { order: "drive", forMs: ms, mostPerSecond: mostPerSecond * share, inFlight } as const;
    return Promise.all(nodes.map(async (node) => (await node.order(driving, "driven")).driven));
  };
  const callsOfAll = async (): Promise<number> => {
    const replies = await Promise.all(nodes.map((node) => node.order({ order: "report" }, "usage")));
    return replies.reduce((sum, { usage }) => sum + usage.calls, 0);
  };
  await driveAll(leadMs);
  const callsBefore = await callsOfAll();
  const serverBeforeUs = await serversCpuUs([server]);
  const driven = await driveAll(forMs);
  const serverUs = (await serversCpuUs([server])) - serverBeforeUs;
  const calls = (await callsOfAll()) - callsBefore;
  await close();

  await server.command("FLUSHALL", "SYNC");
  await open(saturatedShare, saturatedBurst);
  const startUs = nowUs() + soonUs;
  const saturating = { order: "saturate", startUs, phases, share, subjects: saturatedSubjects } as const;
  const saturated = await Promise.all(nodes.map(async (node) => (await node.order(saturating, "saturated")).saturated));
  await close();

  const floodStartUs = startUs + phases[0]!.forMs * 1000;
  const flood = { startUs: floodStartUs, endUs: floodStartUs + phases[floodAt]!.forMs * 1000 };
  const counters = saturatedSubjects.map(({ number, perSecond }, at) => {
    const admissions = joinAdmissions(saturated.map((one) => one.admissions[at]!));
    return judgeCounter(number, perSecond, admissions, flood);
  });
  return { kind, nodes: nodes.length, ...sumUp(driven, calls, serverUs), counters };
}

function sumUp(
  driven: readonly Driven[],
  calls: number,
  serverUs: number,
): Omit<Scaled, "kind" | "nodes" | "counters"> {
  const sum = (quantity: (one: Driven) => number): number => driven.reduce((all, one) => all + quantity(one), 0);
  const decisions = sum((one) => one.decisions);
  return {
    decisionsPerSecond: sum(({ decisions: own, wallMs }) => (own / wallMs) * 1000),
    decisionsPerCpuSecond: (decisions / sum(({ cpuUs }) => cpuUs)) * 1e6,
    callsPerDecision: calls / decisions,
    serverUsPerDecision: serverUs / decisions,
  };
}

function judgeCounter(
  number: number,
  perSecond: number,
  admissions: Admissions,
  flood: { readonly startUs: number; readonly endUs: number },
): CounterVerdict {
  const capacity = perSecond * saturatedBurst;
  const overshoot = worstOvershoot(admissions, capacity, perSecond);
  const inFlood = admissions.answeredUs.filter((us) => us >= flood.startUs && us < flood.endUs).length;
  const allowed = capacity + (perSecond * (flood.endUs - flood.startUs)) / 1e6;
  return {
    number,
    stated: Math.floor(maxOvershoot * perSecond),
    worstSeen: Math.max(Math.ceil(overshoot), 0),
    admittedShare: inFlood / allowed,
  };
}

function joinAdmissions(parts: readonly Admissions[]): Admissions {
  const join = (lists: readonly Float64Array[]): Float64Array => {
    const all = new Float64Array(lists.reduce((sum, list) => sum + list.length, 0));
    let at = 0;
    for (const list of lists) {
      all.set(list, at);
      at += list.length;
    }
    return all;
  };
  return { askedUs: join(parts.map((one) => one.askedUs)), answeredUs: join(parts.map((one) => one.answeredUs)) };
}
