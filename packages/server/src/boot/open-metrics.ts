import type { HotKeys, Limiter } from "sluice";
import type { StoreNode } from "../control-plane/node/join-store.ts";
import type { RunningCounters } from "../data-plane/counters/running-counters.ts";
import { reportHotKeys } from "../observe/hot-keys/hot-key-report.ts";
import type { Recorder } from "../observe/recording/recorder.ts";
import { createHideSubject } from "../observe/telemetry/hide-subjects.ts";
import type { HotKeyMetricsOptions } from "../observe/telemetry/hot-key-metrics.ts";
import { createMetrics, type Metrics } from "../observe/telemetry/metrics.ts";
import type { Tracing } from "../observe/telemetry/tracing.ts";
import type { WorkerLink } from "../observe/worker-link.ts";
import type { Settings } from "../settings/settings.ts";
import { version } from "../version.ts";
import type { FilePolicies } from "./file-policies.ts";
import type { RunningUsageEvents } from "./open-usage-events.ts";
import { noConnections, type RunningParts } from "./running-parts.ts";
import { joinWorkerMetrics } from "./workers/join-worker-metrics.ts";

export interface OpenMetricsOptions {
  readonly settings: Settings;
  readonly ofProcess: boolean;
  readonly worker: WorkerLink | undefined;
  readonly files: FilePolicies;
  readonly counters: RunningCounters;
  readonly limiter: Limiter;
  readonly node: StoreNode | undefined;
  readonly tracing: Tracing | undefined;
  readonly usageEvents: RunningUsageEvents;
  readonly recorder: Pick<Recorder, "figures">;
  readonly running: Pick<RunningParts, "service" | "transports">;
}

/** Metrics of every part, read at each scrape; any of several processes shows those of all. */
export function openMetrics(options: OpenMetricsOptions): Metrics {
  const { settings, worker, files, counters, limiter, node, tracing, usageEvents, recorder, running } = options;
  const own = createMetrics({
    version,
    process: options.ofProcess,
    worker: worker?.number,
    sources: {
      ...counters.stats,
      generation: () => limiter.snapshot.generation,
      store: node?.figures,
      hotKeys: hotKeyFigures(settings, counters.hotKeys),
      pending: () => running.service?.decide.pending ?? 0,
      connections: () => running.transports?.connections ?? noConnections,
      usageEvents:
        settings.usageEvents.length === 0
          ? undefined
          : { read: () => usageEvents.stream.read(), stats: () => usageEvents.events.stats },
      recording:
        settings.record === undefined && settings.recordings === undefined ? undefined : () => recorder.figures,
      spans: tracing && (() => tracing.spans),
      snapshot:
        settings.policySnapshot === undefined
          ? undefined
          : () => ({ inUse: files.origin.source === "snapshot", writtenMs: files.keeper.writtenMs }),
    },
  });
  const metrics = worker === undefined ? own : joinWorkerMetrics(own, worker);
  metrics.usePolicies(files.loaded.policySet);
  if (files.startedStale) metrics.startStale();
  return metrics;
}

/**
 * The hottest counters as metrics, if settings ask for them. Subjects that must not be logged are not shown there
 * either.
 */
function hotKeyFigures(
  { hotKeyMetrics: count, logHashSubjects }: Settings,
  hotKeys: HotKeys,
): HotKeyMetricsOptions | undefined {
  if (count === 0) return undefined;
  const show = logHashSubjects ? createHideSubject() : (subject: string) => subject;
  return { count, show, read: () => reportHotKeys(hotKeys, count) };
}
