import type { ServerLoad } from "@sluice/redis";
import type { Problem } from "sluice";
import type { RefusedSoFar } from "../../observe/telemetry/metrics.ts";
import { type Protocol, protocols } from "../../protocol.ts";
import type { LeasesStatus, RunningCounters, StrongReport } from "../counters/running-counters.ts";
import { countPolicies } from "../policy-files/count-policies.ts";
import type { PolicyStatus } from "../policy-files/policy-reloader.ts";
import { decideReadiness, type Readiness } from "./readiness.ts";
import type { StoreReport } from "./store-report.ts";

/**
 * The state of this server, as plain data: what an operator looks at first. Times are epoch milliseconds or
 * milliseconds.
 */
export interface ServerStatus extends Readiness {
  readonly version: string;
  readonly node: string;
  readonly pid: number;
  /** The number of this process if there are several behind the same ports. */
  readonly worker: number | undefined;
  readonly startedAtMs: number;
  readonly uptimeMs: number;
  readonly policies: PoliciesStatus;
  /** Undefined without a policy store. */
  readonly store: StoreReport | undefined;
  readonly counters: CountersReport;
  /** The database of policies with `counters: strong`. Undefined until it is used. */
  readonly strong: StrongReport | undefined;
  readonly queue: {
    /** Checks waiting for counters, and how many may. */
    readonly pending: number;
    readonly maxPending: number;
  };
  /** Checks refused at once since the start, by reason. */
  readonly shed: RefusedSoFar["shed"];
  /** Where usage events go. Undefined: nowhere. */
  readonly sinks: readonly SinkReport[] | undefined;
  readonly protocols: Readonly<Record<Protocol, ProtocolStatus>>;
}

export interface SinkReport {
  /** Its kind and where it is, without secrets. */
  readonly sink: string;
  readonly waiting: number;
  readonly sent: number;
  /** Attempts to send, most of which are repeated. */
  readonly failed: number;
  readonly dropped: number;
}

export interface PoliciesStatus {
  readonly generation: number;
  readonly count: number;
  readonly state: PolicyStatus["state"];
  /** Where the policies in force come from. */
  readonly source: PolicyOrigin["source"];
  readonly path: string | undefined;
  /** SHA-256 over names and texts of the files in force. */
  readonly digest: string;
  readonly takenUpAtMs: number;
  readonly ageMs: number;
  /** What is wrong with the files on disk. */
  readonly problems: readonly Problem[];
}

/** `none`: there are no policy files, and only the default policy is in force. */
export interface PolicyOrigin {
  readonly source: "files" | "snapshot" | "none";
  readonly digest: string;
  readonly takenUpMs: number;
}

export type CountersReport =
  | { readonly kind: "memory"; readonly counters: number; readonly maxCounters: number; readonly bytes: number }
  | {
      readonly kind: "redis";
      /** Without user and password. */
      readonly at: string;
      readonly ready: boolean;
      /** Questions waiting for earlier calls, and calls in flight. */
      readonly waiting: number;
      readonly inFlight: number;
      /** Undefined if leases are off. */
      readonly leases: LeasesStatus | undefined;
      readonly shards: readonly ShardReport[];
    };

export interface ShardReport {
  readonly name: string;
  readonly cell: string | undefined;
  readonly connected: boolean;
  readonly breaker: "closed" | "open" | "half_open";
  readonly roundTripMs: number | undefined;
  readonly clockAheadMs: number | undefined;
  readonly load: ServerLoad | undefined;
  readonly calls: number;
  readonly failedCalls: number;
}

export interface ProtocolStatus {
  /** Its URLs; empty if it is off. */
  readonly addresses: readonly string[];
  readonly connections: number;
  /** Connections turned away since the start. */
  readonly turnedAway: number;
}

export interface ServerStatusSources {
  readonly version: string;
  readonly worker?: number | undefined;
  readonly startedAtMs: number;
  readonly accepting: () => boolean;
  readonly snapshot: () => {
    readonly generation: number;
    readonly policySet: Parameters<typeof countPolicies>[0];
  };
  readonly policyPath: string | undefined;
  readonly policyStatus: () => PolicyStatus;
  readonly policyOrigin: () => PolicyOrigin;
  readonly store?: (() => StoreReport | undefined) | undefined;
  readonly counters: Pick<RunningCounters, "where" | "stats" | "status" | "strong">;
  readonly pending: () => number;
  readonly maxPending: number;
  readonly refused: RefusedSoFar;
  /** Absent: there are none. */
  readonly sinks?: (() => readonly SinkReport[]) | undefined;
  readonly addresses: () => Readonly<Record<Protocol, readonly string[]>>;
  readonly connections: () => Readonly<Record<Protocol, number>>;
  readonly nowMs?: () => number;
}

/** The most servers that are listed. */
const maxShards = 100;

export function readServerStatus(sources: ServerStatusSources): ServerStatus {
  const { version, worker, startedAtMs, counters, refused } = sources;
  const nowMs = (sources.nowMs ?? Date.now)();
  const connections = sources.connections();
  const addresses = sources.addresses();
  const store = sources.store?.();
  const countersStatus = counters.status();
  const sinks = sources.sinks?.() ?? [];
  return {
    ...decideReadiness({ accepting: sources.accepting(), counters: countersStatus, store }),
    version,
    node: process.version,
    pid: process.pid,
    worker,
    startedAtMs,
    uptimeMs: nowMs - startedAtMs,
    policies: readPolicies(sources, nowMs),
    store,
    counters: readCounters(counters, countersStatus?.leases),
    strong: counters.strong?.(),
    queue: { pending: sources.pending(), maxPending: sources.maxPending },
    shed: refused.shed,
    sinks: sinks.length === 0 ? undefined : sinks,
    protocols: Object.fromEntries(
      protocols.map((protocol) => [
        protocol,
        {
          addresses: addresses[protocol],
          connections: connections[protocol],
          turnedAway: refused.turnedAway(protocol),
        },
      ]),
    ) as Record<Protocol, ProtocolStatus>,
  };
}

function readPolicies(
  { snapshot, policyStatus, policyOrigin, policyPath }: ServerStatusSources,
  nowMs: number,
): PoliciesStatus {
  const { generation, policySet } = snapshot();
  const { state, problems } = policyStatus();
  const { source, digest, takenUpMs } = policyOrigin();
  return {
    generation,
    count: countPolicies(policySet),
    state,
    source,
    path: policyPath,
    digest,
    takenUpAtMs: takenUpMs,
    ageMs: nowMs - takenUpMs,
    problems,
  };
}

function readCounters(
  { where, stats }: ServerStatusSources["counters"],
  leases: LeasesStatus | undefined,
): CountersReport {
  const redis = stats.redis?.();
  if (redis === undefined) {
    const { counters = 0, maxCounters = 0, bytes = 0 } = stats.counters?.() ?? {};
    return { kind: "memory", counters, maxCounters, bytes };
  }
  const { ready, waiting, inFlight, shards } = redis;
  return {
    kind: "redis",
    at: where,
    ready,
    waiting,
    inFlight,
    leases,
    shards: shards.slice(0, maxShards).map((shard) => ({
      name: shard.name,
      cell: shard.cell,
      connected: shard.connected,
      breaker: shard.breaker,
      roundTripMs: shard.roundTripMs,
      clockAheadMs: shard.clockAheadMs,
      load: shard.load,
      calls: shard.figures.calls,
      failedCalls: Object.values(shard.figures.failures).reduce((sum, one) => sum + one, 0),
    })),
  };
}
