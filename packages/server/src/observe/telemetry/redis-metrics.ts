import { callBoundsMs, callFailures, type RedisCountersStats } from "@sluice/redis";
import { histogramSamples } from "./buckets.ts";
import type { Family, Sample } from "./exposition.ts";

export interface RedisStats extends RedisCountersStats {
  readonly ready: boolean;
}

type ShardStats = RedisStats["shards"][number];

/** The most servers with a separate label. */
const maxShards = 500;
const breakerValues = { closed: 0, half_open: 0.5, open: 1 } as const;
const secondsPerMs = 1 / 1_000;

/** A metric with one number, for all servers or for each. */
interface Row<From> {
  readonly type: "counter" | "gauge";
  readonly name: string;
  readonly help: string;
  /** Undefined if there is nothing to show. */
  readonly read: (from: From) => number | undefined;
}

const overall: readonly Row<RedisStats>[] = [
  {
    type: "gauge",
    name: "sluice_redis_ready",
    help: "1 while every server that holds counters is known, connected and asked.",
    read: ({ ready }) => Number(ready),
  },
  {
    type: "counter",
    name: "sluice_redis_calls_total",
    help: "Script calls sent to servers.",
    read: ({ calls }) => calls,
  },
  {
    type: "counter",
    name: "sluice_redis_questions_total",
    help: "Questions in those calls.",
    read: ({ questions }) => questions,
  },
  {
    type: "counter",
    name: "sluice_redis_failed_calls_total",
    help: "Calls that failed or timed out.",
    read: ({ failedCalls }) => failedCalls,
  },
  {
    type: "counter",
    name: "sluice_redis_timeouts_total",
    help: "Questions that were not answered in time.",
    read: ({ timeouts }) => timeouts,
  },
  {
    type: "counter",
    name: "sluice_redis_starved_total",
    help: "Questions whose answers this process could not read in time, because it did not run.",
    read: ({ starved }) => starved,
  },
  {
    type: "counter",
    name: "sluice_redis_stalled_seconds_total",
    help: "Seconds that this process did not run while questions waited: it had no processor, or was busy.",
    read: ({ stalledMs }) => stalledMs / 1000,
  },
  {
    type: "counter",
    name: "sluice_redis_retries_total",
    help: "Questions sent again, because that could not charge twice.",
    read: ({ retries }) => retries,
  },
  {
    type: "counter",
    name: "sluice_redis_script_loads_total",
    help: "Scripts sent in full, to a server that did not know them.",
    read: ({ loads }) => loads,
  },
  {
    type: "counter",
    name: "sluice_redis_foreign_values_total",
    help: "Keys that held something that is not a counter.",
    read: ({ foreign }) => foreign,
  },
  {
    type: "counter",
    name: "sluice_redis_healed_keys_total",
    help: "Keys without an end that were given one.",
    read: ({ healed }) => healed,
  },
  {
    type: "counter",
    name: "sluice_redis_failovers_total",
    help: "Times that counters went over to another server: a failover, or slots of a cluster that moved.",
    read: ({ moves }) => moves,
  },
  {
    type: "gauge",
    name: "sluice_redis_waiting_questions",
    help: "Questions that wait until calls before them are answered.",
    read: ({ waiting }) => waiting,
  },
  {
    type: "gauge",
    name: "sluice_redis_calls_in_flight",
    help: "Calls on their way.",
    read: ({ inFlight }) => inFlight,
  },
];

const perShard: readonly Row<ShardStats>[] = [
  {
    type: "gauge",
    name: "sluice_redis_shard_connected",
    help: "Whether there is a connection to the server.",
    read: ({ connected }) => Number(connected),
  },
  {
    type: "gauge",
    name: "sluice_redis_breaker_open",
    help: "Whether the server's breaker is open: 0 closed, 0.5 being probed, 1 open.",
    read: ({ breaker }) => breakerValues[breaker],
  },
  {
    type: "counter",
    name: "sluice_redis_breaker_opened_total",
    help: "Times that the server's breaker opened.",
    read: ({ figures }) => figures.breakerOpened,
  },
  {
    type: "counter",
    name: "sluice_redis_breaker_closed_total",
    help: "Times that the server's breaker closed again.",
    read: ({ figures }) => figures.breakerClosed,
  },
  {
    type: "gauge",
    name: "sluice_redis_round_trip_seconds",
    help: "How long the last exchange with the server took, or for how long one has gone unanswered.",
    read: ({ roundTripMs }) => (roundTripMs === undefined ? undefined : roundTripMs / 1_000),
  },
  {
    type: "gauge",
    name: "sluice_redis_clock_ahead_seconds",
    help: "How far the server's clock is ahead of this machine's, by the last answers.",
    read: ({ clockAheadMs }) => (clockAheadMs === undefined ? undefined : clockAheadMs / 1_000),
  },
  {
    type: "gauge",
    name: "sluice_redis_server_cpu_ratio",
    help: "Share of a core that the server's main thread used lately, by its own report.",
    read: ({ load }) => load?.cpu,
  },
  {
    type: "gauge",
    name: "sluice_redis_server_operations_per_second",
    help: "Commands that the server runs each second, from all its clients.",
    read: ({ load }) => load?.operationsPerSecond,
  },
  {
    type: "counter",
    name: "sluice_redis_server_evicted_keys_total",
    help: "Keys that the server evicted because its memory was full.",
    read: ({ load }) => load?.evictedKeys,
  },
  {
    type: "gauge",
    name: "sluice_redis_server_memory_bytes",
    help: "Memory that the server uses.",
    read: ({ load }) => load?.memoryBytes,
  },
  {
    type: "gauge",
    name: "sluice_redis_server_memory_max_bytes",
    help: "Memory that the server may use; 0 is as much as the machine has.",
    read: ({ load }) => load?.maxMemoryBytes,
  },
];

/** Metrics of the servers that hold counters, as known at the scrape. */
export function redisMetrics(redis: () => RedisStats): readonly Family[] {
  const shards = (): readonly ShardStats[] => redis().shards.slice(0, maxShards);
  return [
    ...overall.map(({ read, ...family }) => ({
      ...family,
      labels: [],
      samples: () => sampleIfKnown([], read(redis())),
    })),
    callDurations(shards),
    callFailuresByKind(shards),
    ...perShard.map(({ read, ...family }) => ({
      ...family,
      labels: ["shard", "cell"],
      samples: () => shards().flatMap((shard) => sampleIfKnown(shardLabels(shard), read(shard))),
    })),
  ];
}

function callDurations(shards: () => readonly ShardStats[]): Family {
  return {
    name: "sluice_redis_call_duration_seconds",
    help: "How long answered calls took, by server; its count is the calls that were answered.",
    type: "histogram",
    labels: ["shard", "cell"],
    *samples(): Generator<Sample> {
      for (const shard of shards()) {
        const { durations: counts, durationsSumMs: sum } = shard.figures;
        yield* histogramSamples({ bounds: callBoundsMs, counts, sum }, shardLabels(shard), secondsPerMs);
      }
    },
  };
}

function callFailuresByKind(shards: () => readonly ShardStats[]): Family {
  return {
    name: "sluice_redis_call_failures_total",
    help: "Calls that failed, by server and kind of error.",
    type: "counter",
    labels: ["shard", "cell", "error"],
    *samples(): Generator<Sample> {
      for (const shard of shards())
        for (const error of callFailures)
          yield { labels: [...shardLabels(shard), error], value: shard.figures.failures[error] };
    },
  };
}

function sampleIfKnown(labels: readonly string[], value: number | undefined): readonly Sample[] {
  return value === undefined ? [] : [{ labels, value }];
}

function shardLabels({ name, cell = "" }: ShardStats): readonly string[] {
  return [name, cell];
}
