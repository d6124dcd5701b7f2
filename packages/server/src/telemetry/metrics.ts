import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Decision, ErrorCode, MemoryCountersStats, PolicySet } from "sluice";

/** What the gauges ask for whenever they are scraped. */
export interface MetricsSources {
  readonly counters: () => CounterFigures;
  readonly generation: () => number;
}

export interface CounterFigures
  extends Pick<MemoryCountersStats, "counters" | "bytes" | "evictedLive" | "clockAnomalies" | "ids" | "idsCutShort"> {
  readonly maxCounters: number;
}

export interface Metrics {
  countDecision(decision: Decision, seconds: number): void;
  countError(code: ErrorCode): void;
  /** `route` is a path of the route table, or `unmatched`: never what a stranger typed. */
  countHttpRequest(method: string, route: string, status: number): void;
  countReload(successful: boolean): void;
  /** A connection that was turned away because there are too many. */
  countDroppedConnection(): void;
  /** Gives the policies in force their labels, and forgets the figures of policies that are gone. */
  usePolicies(policySet: Pick<PolicySet, "policies" | "fallback">): void;
  /** In Prometheus' text format. */
  render(): Promise<string>;
  readonly contentType: string;
}

export interface MetricsOptions {
  readonly version: string;
  readonly sources: MetricsSources;
  /** Also report on the process itself: CPU, memory, garbage collection, event loop. */
  readonly process?: boolean;
  /** Most policies with a label of their own, the first ones; the rest are counted together as `other`. */
  readonly maxPolicyLabels?: number;
}

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

export function createMetrics({ version, sources, process = false, maxPolicyLabels = 500 }: MetricsOptions): Metrics {
  const registry = new Registry();
  const registers = [registry];
  if (process) collectDefaultMetrics({ register: registry });

  const checks = new Counter({
    name: "sluice_checks_total",
    help: "Checks decided, by the policy that spoke (none where no policy applied) and by the answer.",
    labelNames: ["policy", "allowed"] as const,
    registers,
  });
  const previews = new Counter({ name: "sluice_previews_total", help: "Checks asked as a preview.", registers });
  const replays = new Counter({
    name: "sluice_replays_total",
    help: "Checks answered from an earlier decision with the same id.",
    registers,
  });
  const degraded = new Counter({
    name: "sluice_degraded_total",
    help: "Checks decided without the counters, by the answer.",
    labelNames: ["allowed"] as const,
    registers,
  });
  const shadowDenials = new Counter({
    name: "sluice_shadow_denials_total",
    help: "Checks that a policy in shadow mode would have denied.",
    labelNames: ["policy"] as const,
    registers,
  });
  const errors = new Counter({
    name: "sluice_check_errors_total",
    help: "Checks that could not be decided, by error code.",
    labelNames: ["code"] as const,
    registers,
  });
  const durations = new Histogram({
    name: "sluice_check_duration_seconds",
    help: "How long a decision took, transport excluded.",
    buckets: [0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.025, 0.1, 1],
    registers,
  });
  const httpRequests = new Counter({
    name: "sluice_http_requests_total",
    help: "HTTP requests answered.",
    labelNames: ["method", "route", "status"] as const,
    registers,
  });
  const droppedConnections = new Counter({
    name: "sluice_http_connections_dropped_total",
    help: "Connections turned away because too many were open.",
    registers,
  });
  const reloads = new Counter({
    name: "sluice_config_reloads_total",
    help: "Times the policies were replaced by changed ones.",
    registers,
  });
  const reloadFailures = new Counter({
    name: "sluice_config_reload_failures_total",
    help: "Times changed policies were refused; the last good ones stay.",
    registers,
  });
  const lastReload = new Gauge({
    name: "sluice_config_last_reload_successful",
    help: "1 while the policies in force are those on disk, 0 while the ones on disk are refused.",
    registers,
  });
  lastReload.set(1);
  const lastReloadTime = new Gauge({
    name: "sluice_config_last_reload_success_timestamp_seconds",
    help: "When the policies in force were taken up.",
    registers,
  });
  lastReloadTime.setToCurrentTime();
  for (const [name, help, read] of scrapedGauges(sources)) {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  }
  for (const [name, help, read] of scrapedCounters(sources)) {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }
  new Gauge({ name: "sluice_build_info", help: "1, labelled.", labelNames: ["version"] as const, registers }).set(
    { version },
    1,
  );

  let policyLabels: ReadonlySet<string> = new Set();
  function labelOf(policy: string | undefined): string {
    if (policy === undefined) return "none";
    return policyLabels.has(policy) ? policy : "other";
  }

  return {
    countDecision(decision: Decision, seconds: number): void {
      durations.observe(seconds);
      for (const limit of decision.shadow) shadowDenials.inc({ policy: labelOf(limit.policy) });
      if (decision.preview) {
        previews.inc();
        return;
      }
      const allowed = String(decision.allowed);
      checks.inc({ policy: labelOf(decision.policy), allowed });
      if (decision.replayed) replays.inc();
      if (decision.degraded !== undefined) degraded.inc({ allowed });
    },
    countError: (code) => errors.inc({ code }),
    countHttpRequest: (method, route, status) =>
      httpRequests.inc({ method: methods.has(method) ? method : "other", route, status }),
    countReload(successful: boolean): void {
      (successful ? reloads : reloadFailures).inc();
      lastReload.set(successful ? 1 : 0);
      if (successful) lastReloadTime.setToCurrentTime();
    },
    countDroppedConnection: () => droppedConnections.inc(),
    usePolicies({ policies, fallback }): void {
      const labels = new Set(policies.slice(0, maxPolicyLabels).map(({ id }) => id));
      if (fallback !== undefined) labels.add(fallback.id);
      for (const policy of policyLabels) {
        if (labels.has(policy)) continue;
        for (const allowed of ["true", "false"]) checks.remove({ policy, allowed });
        shadowDenials.remove({ policy });
      }
      policyLabels = labels;
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

type Scraped = readonly [name: string, help: string, read: () => number];

function scrapedGauges({ generation, counters }: MetricsSources): readonly Scraped[] {
  return [
    ["sluice_config_generation", "Generation of the policies in force.", generation],
    ["sluice_counters", "Counters held in memory.", () => counters().counters],
    ["sluice_counters_max", "Most counters that may be held in memory.", () => counters().maxCounters],
    ["sluice_counter_bytes", "Bytes that counters take in memory.", () => counters().bytes],
    ["sluice_request_ids", "Request ids remembered.", () => counters().ids],
  ];
}

function scrapedCounters({ counters }: MetricsSources): readonly Scraped[] {
  return [
    [
      "sluice_counter_evictions_total",
      "Counters in use that were forgotten because memory was full.",
      () => counters().evictedLive,
    ],
    [
      "sluice_request_ids_cut_short_total",
      "Request ids forgotten before their time because too many were remembered.",
      () => counters().idsCutShort,
    ],
    [
      "sluice_clock_anomalies_total",
      "Times the clock stepped back, or the wall clock either way, by more than a minute.",
      () => counters().clockAnomalies,
    ],
  ];
}
