import { startServer } from "@sluice/test-servers";
import { median } from "../measure/interleave.ts";
import { type Latencies, percentile } from "../measure/latencies.ts";
import { countDegraded } from "../service/count-degraded.ts";
import { askOnce } from "./ask-once.ts";
import type { Contest } from "./contests.ts";
import { findCores, pin } from "./cores.ts";
import { createLoad, type QuestionLoad } from "./load-question.ts";
import { readCpuUs } from "./process-usage.ts";
import { type ServerName, type ServerUnderLoad, startServerUnderLoad, type World } from "./start-server-under-load.ts";

export interface ContestSize {
  readonly rounds: number;
  readonly warmup: number;
  /** Of a round, and of the measurement at a fixed rate. */
  readonly seconds: number;
  readonly pacedSeconds: number;
}

export interface MeasuredServer {
  readonly decisions_per_s: number;
  readonly server_cpu_us: number;
  /** 0 if counters are in memory. */
  readonly store_cpu_us: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
}

export interface MeasuredContest {
  /** Requests a second at which everyone's latency was measured. */
  readonly paced_per_s: number;
  readonly servers: Partial<Record<ServerName, MeasuredServer>>;
}

/** Load tools in this process would be slower than that. */
const mostPaced = 10_000;

interface Entrant {
  readonly server: ServerUnderLoad;
  readonly load: QuestionLoad;
  readonly rounds: { perSecond: number; serverUs: number; storeUs: number }[];
}

/** Measures servers in turns, many short rounds each, so that what else the machine does affects all of them equally. */
export async function measureContest(contest: Contest, world: World, size: ContestSize): Promise<MeasuredContest> {
  const valkey = contest.counters === "valkey" ? await startServer({ flavor: "valkey" }) : undefined;
  const entrants: Entrant[] = [];
  try {
    for (const [name, question] of Object.entries(contest.servers)) {
      const server = await startServerUnderLoad(name as ServerName, { ...world, valkeyPort: valkey?.port });
      if (server === undefined) continue;
      entrants.push({ server, load: createLoad(question, server, world.folder), rounds: [] });
      await askOnce(question, server.ports);
    }
    for (let round = 0; round < size.warmup + size.rounds; round++) {
      for (const { server, load, rounds } of entrants) {
        pinAll(round, server.pid, valkey?.pid);
        const before = [readCpuUs(server.pid), readStoreUs(valkey)] as const;
        const { requests, perSecond } = await load.saturate(size.seconds);
        if (round < size.warmup) continue;
        const decisions = requests * contest.perRequest;
        rounds.push({
          perSecond: perSecond * contest.perRequest,
          serverUs: (readCpuUs(server.pid) - before[0]) / decisions,
          storeUs: (readStoreUs(valkey) - before[1]) / decisions,
        });
      }
    }
    const slowest = Math.min(...entrants.map((one) => middle(one, "perSecond"))) / contest.perRequest;
    const pacedPerSecond = Math.round(Math.min(slowest / 2, mostPaced));
    const servers: Partial<Record<ServerName, MeasuredServer>> = {};
    for (const entrant of entrants) {
      pinAll(0, entrant.server.pid, valkey?.pid);
      const latencies = await entrant.load.pace(pacedPerSecond, size.pacedSeconds);
      if (entrant.server.name.startsWith("sluice")) await expectCounted(entrant.server);
      servers[entrant.server.name] = summarize(entrant, latencies);
    }
    return { paced_per_s: pacedPerSecond, servers };
  } finally {
    for (const { server } of entrants) await server.stop();
    await valkey?.close();
  }
}

/** This process as well, because load tools inherit its core. */
function pinAll(round: number, serverPid: number, storePid: number | undefined): void {
  const cores = findCores(round);
  pin(serverPid, cores.server);
  pin(process.pid, cores.load);
  if (storePid !== undefined) pin(storePid, cores.load);
}

function readStoreUs(store: { readonly pid: number } | undefined): number {
  return store === undefined ? 0 : readCpuUs(store.pid);
}

function middle({ rounds }: Entrant, quantity: "perSecond" | "serverUs" | "storeUs"): number {
  return median(rounds.map((round) => round[quantity]));
}

/** A decision without counters would be no decision, and cheaper. */
async function expectCounted(server: ServerUnderLoad): Promise<void> {
  const { degraded } = await countDegraded(server);
  if (degraded > 0) throw new Error(`Sluice decided ${degraded} checks without their counters`);
}

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

function summarize(entrant: Entrant, latencies: Latencies): MeasuredServer {
  return {
    decisions_per_s: Math.round(middle(entrant, "perSecond")),
    server_cpu_us: rounded(middle(entrant, "serverUs"), 2),
    store_cpu_us: rounded(middle(entrant, "storeUs"), 2),
    p50_ms: rounded(percentile(latencies, 0.5), 3),
    p99_ms: rounded(percentile(latencies, 0.99), 3),
  };
}
