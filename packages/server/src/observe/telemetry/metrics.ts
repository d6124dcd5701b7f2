import { setImmediate as turn } from "node:timers/promises";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { Decision, ErrorCode, PolicySet } from "sluice";
import type { Protocol, TurnedAway } from "../../protocol.ts";
import { shareWork } from "../share-work.ts";
import type { NearLimits } from "./capacity-log.ts";
import { DecisionMetrics } from "./decision-metrics.ts";
import type { DecisionTotals } from "./decision-totals.ts";
import { counter, expositionType, type Family, gauge, renderSlices } from "./exposition.ts";
import { HoldMetrics, type HoldOutcome } from "./hold-metrics.ts";
import { type HotKeyMetricsOptions, hotKeyMetrics } from "./hot-key-metrics.ts";
import { type LeaseStats, leaseMetrics } from "./lease-metrics.ts";
import { type LeaseOutcome, LeaseRequestMetrics } from "./lease-request-metrics.ts";
import { type MemoryStats, memoryMetrics } from "./memory-metrics.ts";
import { PolicyMetrics, type PolicyMetricsSources } from "./policy-metrics.ts";
import { type RecordingFigures, recordingMetrics } from "./recording-metrics.ts";
import { type RedisStats, redisMetrics } from "./redis-metrics.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { type StrongStats, strongMetrics } from "./strong-metrics.ts";
import { type Count, Tally, tallied } from "./tally.ts";
import { type UsageEventMetricsSources, usageEventMetrics } from "./usage-event-metrics.ts";

/** Why checks are refused without being decided: too many are waiting, or arriving. */
export type ShedReason = "pending" | "rate";

/** What is read at each scrape. */
export interface MetricsSources extends PolicyMetricsSources {
  /** Counters in this process's memory. */
  readonly counters?: () => MemoryStats;
  /** Counters on servers. */
  readonly redis?: () => RedisStats;
  /** Counters of policies with `counters: strong`. Absent: there is no database for them. */
  readonly strong?: (() => StrongStats) | undefined;
  /** Leases from those servers. Absent: they are off. */
  readonly leases?: (() => LeaseStats) | undefined;
  /** Absent: no counter has a separate series. */
  readonly hotKeys?: HotKeyMetricsOptions | undefined;
  /** Checks waiting for counters. */
  readonly pending?: () => number;
  /** Open connections. */
  readonly connections?: () => Readonly<Record<Protocol, number>>;
  /** How this server stands with the policy store. Absent: there is none. */
  readonly store?: { readonly families: readonly Family[] } | undefined;
  /** Absent: usage events go nowhere. */
  readonly usageEvents?: UsageEventMetricsSources | undefined;
  readonly recording?: (() => RecordingFigures) | undefined;
  /** Spans accepted by a collector, and those that were not. Absent: there are no traces. */
  readonly spans?: (() => { readonly exported: number; readonly dropped: number }) | undefined;
}

/**
 * Counts everything that happens. Labels come from policies, tables and settings, never from a request, so that a
 * client cannot create series; except for hot keys, if settings ask for them.
 */
export interface Metrics {
  countDecision(decision: Decision, seconds: number): void;
  countError(code: ErrorCode): void;
  /** A preview that was answered from memory. */
  countPreviewHit(): void;
  /** A check lacked a dimension that a limit of the policy counts by. */
  countMissing(policy: string, dimension: string): void;
  /** Counts a call for a lease, and the cost that its client has decided since the last one by the deciding policy. */
  countLease(outcome: LeaseOutcome, policy: string | undefined, spent: number): void;
  /** Counts a call about a hold. */
  countHold(outcome: HoldOutcome): void;
  /** The count of checks asked over a protocol, for the transport to add to. */
  checkCount(protocol: Protocol): Count;
  /** `route` is a path of the route table, or `unmatched`: never what a client typed. */
  countHttpRequest(method: string, route: string, status: number, seconds?: number): void;
  /** `method` is a served one, or `unknown`; `code` is the name of a status, such as `OK`. */
  countGrpcCall(method: string, code: string, seconds?: number): void;
  /** `command` is a served one, or `unknown`; `outcome` is a word of a fixed set. */
  countRespCommand(command: string, outcome: string, seconds?: number): void;
  countReload(successful: boolean): void;
  /** The policies in force are not those on disk, from the start. */
  startStale(): void;
  /** A connection that was turned away, and why. */
  countTurnedAway(protocol: Protocol, why: TurnedAway | "too_many_calls" | "flood"): void;
  /** Checks that were refused without being decided. */
  countShed(reason: ShedReason, checks: number): void;
  /** Checks shed and connections turned away so far. */
  readonly refused: RefusedSoFar;
  /** Everything that was decided so far. */
  readonly decided: () => DecisionTotals;
  /** Gives the policies in force their labels, and forgets the counts of policies that are gone. */
  usePolicies(policySet: Pick<PolicySet, "policies" | "fallback">): void;
  /** Gives limits that requests bring along separate labels, by name; the others are counted as `other`. */
  labelLimits(names: readonly string[]): void;
  /** How often policies came near their limits. */
  readonly nearLimits: NearLimits;
  /** Every metric of ours, with its labels. */
  readonly families: readonly Family[];
  /** Renders Prometheus' text format, as of this call. Rendered once for all concurrent callers. */
  render(): Promise<string>;
  readonly contentType: string;
}

export interface RefusedSoFar {
  readonly shed: Readonly<Record<ShedReason, number>>;
  turnedAway(protocol: Protocol): number;
}

export interface MetricsOptions {
  readonly version: string;
  readonly sources: MetricsSources;
  /** Also report on the process itself: CPU, memory, garbage collection, event loop. */
  readonly process?: boolean;
  /** The most policies with a separate label, the first ones; the rest are counted together as `other`. */
  readonly maxPolicyLabels?: number;
  /** The number of this worker process, if there are several: a label of every series. */
  readonly worker?: number | undefined;
}

export function createMetrics(options: MetricsOptions): Metrics {
  const { version, sources, process: ofProcess = false, maxPolicyLabels = 500, worker } = options;
  const labels = worker === undefined ? {} : { worker: String(worker) };
  const decisions = new DecisionMetrics(maxPolicyLabels);
  const requests = new RequestMetrics(sources.connections);
  const policies = new PolicyMetrics(sources);
  const leaseRequests = new LeaseRequestMetrics();
  const holds = new HoldMetrics();
  const errors = new Tally(1);
  const shed = new Tally(1);
  const previewHits: Count = { count: 0 };
  const families: Family[] = [
    ...decisions.families,
    counter("sluice_preview_cache_hits_total", "Previews answered from memory.", () => previewHits.count),
    tallied("sluice_check_errors_total", "Checks that could not be decided, by error code.", ["code"], errors),
    tallied(
      "sluice_shed_checks_total",
      "Checks refused at once because too many were waiting (pending) or arriving (rate).",
      ["reason"],
      shed,
    ),
    ...leaseRequests.families,
    ...holds.families,
    ...requests.families,
    ...policies.families,
    {
      name: "sluice_build_info",
      help: "1, labelled with the versions of Sluice and of Node.",
      type: "gauge",
      labels: ["version", "node"],
      samples: () => [{ labels: [version, process.version], value: 1 }],
    },
    ...listFamilies(sources),
  ];

  const registry = new Registry();
  if (ofProcess) {
    registry.setDefaultLabels(labels);
    collectDefaultMetrics({ register: registry });
    // Sums of gauges under the name of counters; the gauges themselves stay.
    for (const what of ["handles", "requests", "resources"]) registry.removeSingleMetric(`nodejs_active_${what}_total`);
  }

  return {
    countDecision: (decision, seconds) => decisions.count(decision, seconds),
    countError(code): void {
      errors.at(code).count += 1;
    },
    countMissing: (policy, dimension) => decisions.countMissing(policy, dimension),
    countPreviewHit(): void {
      previewHits.count += 1;
    },
    countLease: (outcome, policy, spent) => leaseRequests.count(outcome, policy, spent),
    countHold: (outcome) => holds.count(outcome),
    checkCount: (protocol) => requests.checkCount(protocol),
    countHttpRequest: (method, route, status, seconds) => requests.countHttp(method, route, status, seconds),
    countGrpcCall: (method, code, seconds) => requests.countGrpc(method, code, seconds),
    countRespCommand: (command, outcome, seconds) => requests.countResp(command, outcome, seconds),
    countReload: (successful) => policies.countReload(successful),
    startStale: () => policies.startStale(),
    countTurnedAway: (protocol, why) => requests.countTurnedAway(protocol, why),
    countShed(reason, checks): void {
      shed.at(reason).count += checks;
    },
    refused: {
      get shed(): Readonly<Record<ShedReason, number>> {
        return { pending: shed.sum("pending"), rate: shed.sum("rate") };
      },
      turnedAway: (protocol) => requests.turnedAway(protocol),
    },
    usePolicies(policySet): void {
      decisions.use(policySet);
      policies.use(policySet);
    },
    labelLimits: (names) => decisions.label(names),
    nearLimits: () => decisions.nearLimits(),
    decided: () => decisions.totals,
    families,
    render: shareWork(async () => {
      let text = "";
      for (const slice of renderSlices(families, labels)) {
        text += slice;
        // Lets checks run before a large page is complete.
        if (slice.length > 0) await turn();
      }
      return ofProcess ? text + (await registry.metrics()) : text;
    }),
    contentType: expositionType,
  };
}

/** The metrics of the parts that this server has. */
function listFamilies(sources: MetricsSources): readonly Family[] {
  const { pending, counters, redis, strong, leases, hotKeys, spans, store, usageEvents, recording } = sources;
  const families: Family[] = [];
  if (store !== undefined) families.push(...store.families);
  if (pending !== undefined)
    families.push(gauge("sluice_pending_checks", "Checks that wait for counters now.", pending));
  if (counters !== undefined) families.push(...memoryMetrics(counters));
  if (redis !== undefined) families.push(...redisMetrics(redis));
  if (strong !== undefined) families.push(...strongMetrics(strong));
  if (leases !== undefined) families.push(...leaseMetrics(leases));
  if (hotKeys !== undefined) families.push(...hotKeyMetrics(hotKeys));
  if (usageEvents !== undefined) families.push(...usageEventMetrics(usageEvents));
  if (recording !== undefined) families.push(...recordingMetrics(recording));
  if (spans !== undefined)
    families.push({
      name: "sluice_trace_spans_total",
      help: "Spans handed to the collector of traces, and those dropped because it did not take them in time.",
      type: "counter",
      labels: ["outcome"],
      samples: () => Object.entries(spans()).map(([outcome, value]) => ({ labels: [outcome], value })),
    });
  return families;
}
