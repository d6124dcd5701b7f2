import type { RedisCounters } from "@sluice/redis";
import type { CountersStatus, LeasesStatus } from "./running-counters.ts";

/** A counter server whose exchanges take longer counts as slow. */
export const slowMs = 2_000;

const maxAway = 20;

/** Which servers are not asked now, or answer slowly, and why. */
export function redisStatus({ ready, stats }: RedisCounters, leases?: LeasesStatus): CountersStatus {
  const away = stats.shards.filter(({ connected, breaker }) => !connected || breaker !== "closed");
  const slow = stats.shards.filter(({ connected, roundTripMs = 0 }) => connected && roundTripMs > slowMs);
  return {
    ready,
    shards: stats.shards.length,
    away: away.slice(0, maxAway).map(({ name, cell, connected, breaker }) => ({
      shard: name,
      cell,
      why: connected ? `its breaker is ${breaker.replace("_", " ")}` : "there is no connection",
    })),
    slow: slow.slice(0, maxAway).map(({ name, cell, roundTripMs = 0 }) => ({
      shard: name,
      cell,
      why: `the last exchange took ${Math.round(roundTripMs)} ms`,
    })),
    leases,
  };
}
