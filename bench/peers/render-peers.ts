import { renderCount, renderTable } from "../measure/write-section.ts";
import { type ContestName, contestNames } from "./contests.ts";
import type { MeasuredContest, MeasuredServer } from "./measure-contest.ts";
import type { MeasuredMemory, MemoryName } from "./measure-memory.ts";
import { describeRelease, type PeerName, peerNames, peerPrograms, unmeasured } from "./peer-programs.ts";
import type { ServerName } from "./start-server-under-load.ts";

/** The JSON object that the suite prints. */
export interface PeersResult {
  readonly suite: "peers";
  readonly cores: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly missing: Partial<Record<PeerName, string>>;
  readonly contests: Partial<Record<ContestName, MeasuredContest>>;
  readonly keys: number;
  readonly memory: Partial<Record<MemoryName, MeasuredMemory>>;
  readonly took_s: number;
}

export const serverTitles: Readonly<Record<ServerName, string>> = {
  sluice: "Sluice",
  sluice_leased: "Sluice with leases",
  envoy_ratelimit: "envoyproxy/ratelimit",
  envoy_ratelimit_pipelined: "envoyproxy/ratelimit, pipelined",
  gubernator: "gubernator",
  throttlecrab: "throttlecrab",
};

const contestTexts: Readonly<Record<ContestName, { readonly title: string; readonly about: string }>> = {
  rls_valkey: {
    title: "Envoy's rate limit service, counters on one Valkey",
    about: `One descriptor, one limit by the hour, both servers from the same file, 512 calls at a time about one subject.
"Pipelined" is \`REDIS_PIPELINE_WINDOW=150us\`, which its documentation recommends.
Leases are on by default in Sluice. They decide about busy subjects in the server's memory, and a single busy
subject is their best case; with subjects that are each asked about rarely, the row without them applies.`,
  },
  rls_memory: {
    title: "Envoy's rate limit service, counters in memory",
    about: "envoyproxy/ratelimit has no counters in memory, so Sluice is alone here.",
  },
  grpc_memory: {
    title: "gRPC, one decision in each call, counters in memory",
    about: `Each server is asked by its own unary method, 512 calls at a time about one subject.
Sluice finds the limit in its policies; the other two get it from the caller.`,
  },
  grpc_batch_memory: {
    title: "gRPC, 64 decisions in each call, counters in memory",
    about: "The unary methods that take many subjects: `CheckBatch` and `GetRateLimits`. throttlecrab has none.",
  },
  http_memory: {
    title: "HTTP and JSON, counters in memory",
    about: "One decision in each request, 32 connections, 1 000 subjects in turn.",
  },
  resp_memory: {
    title: "RESP, counters in memory",
    about: `\`CL.THROTTLE\` of Sluice and \`THROTTLE\` of throttlecrab: the same arguments, the same algorithm (GCRA).
32 connections, one command at a time on each, 1 000 subjects at random.`,
  },
  resp_pipelined_memory: {
    title: "RESP with pipelines, counters in memory",
    about: `The same commands, 16 of them at a time on each of 8 connections.
throttlecrab sends each answer separately and leaves Nagle's algorithm on,
so that most of its answers wait for the client's acknowledgement of the one before.`,
  },
};

const memoryTitles: Readonly<Record<MemoryName, string>> = {
  sluice_memory: "Sluice, in memory",
  gubernator_memory: "gubernator, in memory",
  throttlecrab_memory: "throttlecrab, in memory",
  sluice_valkey: "Sluice, on Valkey",
  envoy_ratelimit_valkey: "envoyproxy/ratelimit, on Valkey",
};

/** The section of docs/benchmarks.md. */
export function renderPeers(result: PeersResult): string {
  const parts = [renderSetup(result)];
  for (const name of contestNames) {
    const contest = result.contests[name];
    if (contest !== undefined) parts.push(renderContest(name, contest));
  }
  parts.push(renderMemory(result));
  return parts.join("\n\n");
}

function renderSetup({ cores, rounds, seconds, versions, missing, took_s }: PeersResult): string {
  const older = peerNames.filter((name) => {
    const [newest] = peerPrograms[name].releases;
    return versions[name] !== undefined && versions[name] !== describeRelease(newest!);
  });
  return [
    `Measured on a machine with ${cores} cores, in ${Math.ceil(took_s / 60)} minutes:`,
    `the median of ${rounds} rounds of about ${seconds} s for each server.`,
    "",
    renderTable(
      ["program", "version"],
      Object.entries(versions).map(([name, version]) => [findTitle(name), version]),
    ),
    ...older.map(
      (name) =>
        `\nA later release, ${describeRelease(peerPrograms[name].releases[0]!)}, could not be verified against Go's checksum\n` +
        "database where this was measured, so it was left out.",
    ),
    ...Object.entries(missing).map(([name]) => `\n${findTitle(name)} was not measured.`),
    ...Object.entries(unmeasured).map(([name, why]) => `\n${name} is not measured:\n${why}.`),
  ].join("\n");
}

function findTitle(name: string): string {
  return (serverTitles as Readonly<Record<string, string>>)[name] ?? name;
}

function renderContest(name: ContestName, { paced_per_s, servers }: MeasuredContest): string {
  const { title, about } = contestTexts[name];
  const entries = (Object.entries(servers) as [ServerName, MeasuredServer][]).toSorted(
    ([, one], [, other]) => cpu(one) - cpu(other),
  );
  const hasStore = entries.some(([, { store_cpu_us }]) => store_cpu_us > 0);
  const rows = entries.map(([server, measured]) => [
    serverTitles[server],
    renderCount(measured.decisions_per_s),
    measured.server_cpu_us.toFixed(2),
    ...(hasStore ? [measured.store_cpu_us.toFixed(2)] : []),
    measured.p50_ms.toFixed(2),
    measured.p99_ms.toFixed(2),
  ]);
  const heads = [
    "server",
    "decisions per second",
    "µs of CPU of the server",
    ...(hasStore ? ["µs of CPU of Valkey"] : []),
    "p50 ms",
    "p99 ms",
  ];
  return [
    `### ${title}`,
    "",
    about,
    `Latency is that of everyone at ${renderCount(paced_per_s)} requests per second.`,
    "",
    renderTable(heads, rows),
    "",
    compare(entries),
  ]
    .join("\n")
    .trimEnd();
}

const cpu = ({ server_cpu_us, store_cpu_us }: MeasuredServer): number => server_cpu_us + store_cpu_us;

/** How much more CPU time the best of the others takes than Sluice, or Sluice than it. */
function compare(entries: readonly (readonly [ServerName, MeasuredServer])[]): string {
  const ours = entries.filter(([name]) => name.startsWith("sluice"));
  const [rival] = entries.filter((entry) => !ours.includes(entry));
  if (rival === undefined) return "";
  return ours
    .map((one) => {
      const [more, less] = cpu(one[1]) > cpu(rival[1]) ? [one, rival] : [rival, one];
      const times = cpu(more[1]) / cpu(less[1]);
      return `${serverTitles[more[0]]} takes ${times.toFixed(times < 10 ? 1 : 0)} times the CPU time of ${serverTitles[less[0]]}.`;
    })
    .join("\n");
}

function renderMemory({ memory, keys }: PeersResult): string {
  const rows = (Object.entries(memory) as [MemoryName, MeasuredMemory][]).map(([name, measured]) => [
    memoryTitles[name],
    `${measured.before_mib} → ${measured.after_mib}`,
    measured.counters === "valkey" ? `${measured.store_before_mib} → ${measured.store_after_mib}` : "–",
    renderCount(measured.bytes_per_key),
  ]);
  return [
    `### Memory of ${renderCount(keys)} keys`,
    "",
    "Resident memory before and after one decision about each key, in MiB, and what that is for each key.",
    "",
    renderTable(["server, counters", "server", "Valkey", "bytes per key"], rows),
  ].join("\n");
}
