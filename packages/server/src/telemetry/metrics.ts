import type { RedisCountersStats } from "@sluice/redis";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Decision, ErrorCode, MemoryCountersStats, PolicySet, StoreUnavailableReason } from "sluice";

/** What the gauges ask for whenever they are scraped. */
export interface MetricsSources {
  readonly generation: () => number;
  /** Of counters in this process's memory. */
  readonly counters?: () => CounterFigures;
  /** Of counters on servers. */
  readonly redis?: () => RedisFigures;
}

export interface RedisFigures extends RedisCountersStats {
  readonly ready: boolean;
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
    name: "sluice_degraded_decisions_total",
    help: "Checks decided without the counters, by the policy that spoke, why they could not be asked, and the answer.",
    labelNames: ["policy", "reason", "allowed"] as const,
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
  if (sources.redis !== undefined) registerShards(sources.redis, registers);
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
      if (decision.degraded !== undefined)
        degraded.inc({ policy: labelOf(decision.policy), reason: decision.degraded, allowed });
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
        for (const allowed of ["true", "false"]) {
          checks.remove({ policy, allowed });
          for (const reason of outages) degraded.remove({ policy, reason, allowed });
        }
        shadowDenials.remove({ policy });
      }
      policyLabels = labels;
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

const outages: readonly StoreUnavailableReason[] = ["storage_unavailable", "storage_timeout", "storage_overloaded"];

type Scraped = readonly [name: string, help: string, read: () => number];

function scrapedGauges({ generation, counters, redis }: MetricsSources): readonly Scraped[] {
  const gauges: Scraped[] = [["sluice_config_generation", "Generation of the policies in force.", generation]];
  if (counters !== undefined)
    gauges.push(
      ["sluice_counters", "Counters held in memory.", () => counters().counters],
      ["sluice_counters_max", "Most counters that may be held in memory.", () => counters().maxCounters],
      ["sluice_counter_bytes", "Bytes that counters take in memory.", () => counters().bytes],
      ["sluice_request_ids", "Request ids remembered.", () => counters().ids],
    );
  if (redis !== undefined)
    gauges.push([
      "sluice_redis_ready",
      "1 while every server that holds counters is known, connected and asked.",
      () => Number(redis().ready),
    ]);
  return gauges;
}

function scrapedCounters({ counters, redis }: MetricsSources): readonly Scraped[] {
  const scraped: Scraped[] = [];
  if (counters !== undefined)
    scraped.push(
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
    );
  if (redis !== undefined)
    scraped.push(
      ["sluice_redis_calls_total", "Script calls sent to servers.", () => redis().calls],
      ["sluice_redis_questions_total", "Questions in those calls.", () => redis().questions],
      [
        "sluice_redis_failed_calls_total",
        "Calls that failed, or that nobody waits for any more.",
        () => redis().failedCalls,
      ],
      ["sluice_redis_timeouts_total", "Questions that were not answered in time.", () => redis().timeouts],
      [
        "sluice_redis_retries_total",
        "Questions sent again, because that could not charge twice.",
        () => redis().retries,
      ],
      [
        "sluice_redis_script_loads_total",
        "Scripts sent in full, to a server that did not know them.",
        () => redis().loads,
      ],
      ["sluice_redis_foreign_values_total", "Keys that held something that is not a counter.", () => redis().foreign],
      ["sluice_redis_healed_keys_total", "Keys without an end that were given one.", () => redis().healed],
    );
  return scraped;
}

/** Most servers with a label of their own. */
const maxShards = 500;
const breakerValues = { closed: 0, half_open: 0.5, open: 1 } as const;

/** How each server stands, as far as it is known when somebody looks. */
function registerShards(redis: () => RedisFigures, registers: Registry[]): void {
  const labelNames = ["shard", "cell"] as const;
  new Gauge({
    name: "sluice_redis_shard_connected",
    help: "Whether there is a connection to the server.",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { name: shard, cell = "", connected } of redis().shards.slice(0, maxShards))
        this.set({ shard, cell }, Number(connected));
    },
  });
  new Gauge({
    name: "sluice_redis_breaker_open",
    help: "Whether the server is not asked because it did not answer: 0 asked, 0.5 being probed, 1 not asked.",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { name: shard, cell = "", breaker } of redis().shards.slice(0, maxShards))
        this.set({ shard, cell }, breakerValues[breaker]);
    },
  });
  new Gauge({
    name: "sluice_redis_clock_ahead_seconds",
    help: "How far the server's clock is ahead of this machine's, by the last answers.",
    labelNames: ["shard"] as const,
    registers,
    collect() {
      this.reset();
      for (const { name: shard, clockAheadMs } of redis().shards.slice(0, maxShards))
        if (clockAheadMs !== undefined) this.set({ shard }, clockAheadMs / 1000);
    },
  });
}
