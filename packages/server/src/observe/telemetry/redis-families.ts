import { callBoundsMs, callFailures, type RedisCountersStats } from "@sluice/redis";
import { histogramSamples } from "./buckets.ts";
import type { Family, Sample } from "./exposition.ts";

export interface RedisFigures extends RedisCountersStats {
  readonly ready: boolean;
}

type ShardFigures = RedisFigures["shards"][number];

/** Most servers with a label of their own. */
const maxShards = 500;
const breakerValues = { closed: 0, half_open: 0.5, open: 1 } as const;
const secondsPerMs = 1 / 1_000;

/** Of servers that hold counters, as far as is known when somebody looks. */
export function redisFamilies(redis: () => RedisFigures): readonly Family[] {
  const one = (
    type: "counter" | "gauge",
    name: string,
    help: string,
    read: (figures: RedisFigures) => number,
  ): Family => ({
    name,
    help,
    type,
    labels: [],
    samples: () => [{ labels: [], value: read(redis()) }],
  });
  const byShard = (
    type: "counter" | "gauge",
    name: string,
    help: string,
    read: (shard: ShardFigures) => number | undefined,
  ): Family => ({
    name,
    help,
    type,
    labels: ["shard", "cell"],
    *samples(): Generator<Sample> {
      for (const shard of redis().shards.slice(0, maxShards)) {
        const value = read(shard);
        if (value !== undefined) yield { labels: labelsOf(shard), value };
      }
    },
  });
  return [
    one(
      "gauge",
      "sluice_redis_ready",
      "1 while every server that holds counters is known, connected and asked.",
      ({ ready }) => Number(ready),
    ),
    one("counter", "sluice_redis_calls_total", "Script calls sent to servers.", ({ calls }) => calls),
    one("counter", "sluice_redis_questions_total", "Questions in those calls.", ({ questions }) => questions),
    one(
      "counter",
      "sluice_redis_failed_calls_total",
      "Calls that failed, or that nobody waits for any more.",
      ({ failedCalls }) => failedCalls,
    ),
    one(
      "counter",
      "sluice_redis_timeouts_total",
      "Questions that were not answered in time.",
      ({ timeouts }) => timeouts,
    ),
    one(
      "counter",
      "sluice_redis_starved_total",
      "Questions whose answers this process could not hear in time, because it did not run.",
      ({ starved }) => starved,
    ),
    one(
      "counter",
      "sluice_redis_stalled_seconds_total",
      "Seconds that this process did not run while questions waited: it had no processor, or was busy.",
      ({ stalledMs }) => stalledMs / 1000,
    ),
    one(
      "counter",
      "sluice_redis_retries_total",
      "Questions sent again, because that could not charge twice.",
      ({ retries }) => retries,
    ),
    one(
      "counter",
      "sluice_redis_script_loads_total",
      "Scripts sent in full, to a server that did not know them.",
      ({ loads }) => loads,
    ),
    one(
      "counter",
      "sluice_redis_foreign_values_total",
      "Keys that held something that is not a counter.",
      ({ foreign }) => foreign,
    ),
    one(
      "counter",
      "sluice_redis_healed_keys_total",
      "Keys without an end that were given one.",
      ({ healed }) => healed,
    ),
    one(
      "counter",
      "sluice_redis_failovers_total",
      "Times that counters went over to another server: a failover, or slots of a cluster that moved.",
      ({ moves }) => moves,
    ),
    one(
      "gauge",
      "sluice_redis_waiting_questions",
      "Questions that wait until calls before them are answered.",
      ({ waiting }) => waiting,
    ),
    one("gauge", "sluice_redis_calls_in_flight", "Calls on their way.", ({ inFlight }) => inFlight),
    {
      name: "sluice_redis_call_duration_seconds",
      help: "How long answered calls took, by server; its count is the calls that were answered.",
      type: "histogram",
      labels: ["shard", "cell"],
      *samples(): Generator<Sample> {
        for (const shard of redis().shards.slice(0, maxShards)) {
          const { durations: counts, durationsSumMs: sum } = shard.figures;
          yield* histogramSamples({ bounds: callBoundsMs, counts, sum }, labelsOf(shard), secondsPerMs);
        }
      },
    },
    {
      name: "sluice_redis_call_failures_total",
      help: "Calls that failed, by server and kind of error.",
      type: "counter",
      labels: ["shard", "cell", "error"],
      *samples(): Generator<Sample> {
        for (const shard of redis().shards.slice(0, maxShards))
          for (const error of callFailures)
            yield { labels: [...labelsOf(shard), error], value: shard.figures.failures[error] };
      },
    },
    byShard("gauge", "sluice_redis_shard_connected", "Whether there is a connection to the server.", ({ connected }) =>
      Number(connected),
    ),
    byShard(
      "gauge",
      "sluice_redis_breaker_open",
      "Whether the server is not asked because it did not answer: 0 asked, 0.5 being probed, 1 not asked.",
      ({ breaker }) => breakerValues[breaker],
    ),
    byShard(
      "counter",
      "sluice_redis_breaker_opened_total",
      "Times that the server was asked no more because it did not answer.",
      ({ figures }) => figures.breakerOpened,
    ),
    byShard(
      "counter",
      "sluice_redis_breaker_closed_total",
      "Times that the server was asked again after that.",
      ({ figures }) => figures.breakerClosed,
    ),
    byShard(
      "gauge",
      "sluice_redis_round_trip_seconds",
      "How long the last exchange with the server took, or for how long one has gone unanswered.",
      ({ roundTripMs }) => (roundTripMs === undefined ? undefined : roundTripMs / 1_000),
    ),
    byShard(
      "gauge",
      "sluice_redis_clock_ahead_seconds",
      "How far the server's clock is ahead of this machine's, by the last answers.",
      ({ clockAheadMs }) => (clockAheadMs === undefined ? undefined : clockAheadMs / 1_000),
    ),
  ];
}

function labelsOf({ name, cell = "" }: ShardFigures): readonly string[] {
  return [name, cell];
}
