import type { Limiter } from "sluice";
import type { StoreNode } from "../control-plane/node/join-store.ts";
import type { Access } from "../data-plane/access/access.ts";
import type { RunningCounters } from "../data-plane/counters/running-counters.ts";
import { createDecide } from "../data-plane/service/create-decide.ts";
import { createService } from "../data-plane/service/create-service.ts";
import type { Service } from "../data-plane/service/service.ts";
import { readServerStatus, type ServerStatus, type SinkReport } from "../data-plane/status/server-status.ts";
import type { DenialSamples } from "../observe/denials/denial-samples.ts";
import type { OwnHotKeys } from "../observe/hot-keys/own-hot-keys.ts";
import type { DecisionTail } from "../observe/live/decision-tail.ts";
import type { Recorder } from "../observe/recording/recorder.ts";
import { createDecisionLog } from "../observe/telemetry/decision-log.ts";
import type { Logger } from "../observe/telemetry/logger.ts";
import type { Metrics } from "../observe/telemetry/metrics.ts";
import type { Tracing } from "../observe/telemetry/tracing.ts";
import type { UsageEventReading } from "../observe/telemetry/usage-event-metrics.ts";
import type { UsageSums } from "../observe/usage/usage-sums.ts";
import type { Settings } from "../settings/settings.ts";
import { version } from "../version.ts";
import type { FilePolicies } from "./file-policies.ts";
import type { RunningUsageEvents } from "./open-usage-events.ts";
import { noAddresses, noConnections, type RunningParts } from "./running-parts.ts";

export interface OpenServiceOptions {
  readonly settings: Settings;
  readonly log: Logger;
  readonly startedAtMs: number;
  readonly worker: number | undefined;
  readonly files: FilePolicies;
  readonly counters: RunningCounters;
  readonly limiter: Limiter;
  readonly hotKeys: OwnHotKeys;
  readonly usage: UsageSums | undefined;
  readonly usageEvents: RunningUsageEvents;
  readonly denials: DenialSamples | undefined;
  readonly recorder: Recorder;
  readonly node: StoreNode | undefined;
  readonly tail: DecisionTail | undefined;
  readonly access: Access;
  readonly metrics: Metrics;
  readonly tracing: Tracing | undefined;
  readonly running: RunningParts;
}

/** The service that every transport is built on. */
export function openService(options: OpenServiceOptions): Service {
  const { settings, log, files, counters, limiter, hotKeys, node, access, metrics, tracing, running } = options;
  return createService({
    limiter,
    decide: createDecide({
      limiter,
      metrics,
      observe: createDecisionLog({ log, level: settings.logLevel, sample: settings.logSample }),
      usage: options.usage,
      events: options.usageEvents.events,
      denials: options.denials,
      tail: options.tail,
      recorder: options.recorder,
      maxPending: settings.maxPending,
      maxChecksPerSecond: settings.maxChecksPerSecond,
    }),
    access,
    metrics,
    log,
    accepting: () => running.accepting,
    policyStatus: () => files.status,
    countersStatus: () => counters.status(),
    storeStatus: () => node?.report(),
    hotKeys,
    audit: node?.control?.audit,
    leaseTimes: settings.leases === "off" ? "off" : { leaseMs: settings.leaseMs, staleMs: settings.leaseStaleMs },
    status: () => readStatus(options),
    tracing,
    version,
  });
}

function readStatus(options: OpenServiceOptions): ServerStatus {
  const { settings, startedAtMs, worker, files, counters, limiter, node, metrics, running } = options;
  return readServerStatus({
    version,
    worker,
    startedAtMs,
    accepting: () => running.accepting,
    snapshot: () => limiter.snapshot,
    policyPath: settings.config,
    policyStatus: () => files.status,
    policyOrigin: () => files.origin,
    store: () => node?.report(),
    counters,
    pending: () => running.service?.decide.pending ?? 0,
    maxPending: settings.maxPending,
    refused: metrics.refused,
    sinks: () => options.usageEvents.stream.read().sinks.map(sinkReport),
    addresses: () => running.addresses ?? noAddresses,
    connections: () => running.transports?.connections ?? noConnections,
  });
}

function sinkReport({ sink, waiting, sent, failed, dropped }: UsageEventReading["sinks"][number]): SinkReport {
  return { ...{ sink, waiting, sent, failed }, dropped: Object.values(dropped).reduce((sum, one) => sum + one, 0) };
}
