import type { RedisCounters } from "@sluice/redis";
import type { CountersStatus } from "./running-counters.ts";

const maxAway = 20;

/** Which servers are not asked now, and why. */
export function statusOfRedis({ ready, stats }: RedisCounters): CountersStatus {
  const away = stats.shards.filter(({ connected, breaker }) => !connected || breaker !== "closed");
  return {
    ready,
    shards: stats.shards.length,
    away: away.slice(0, maxAway).map(({ name, cell, connected, breaker }) => ({
      shard: name,
      cell,
      why: connected ? `its breaker is ${breaker.replace("_", " ")}` : "there is no connection",
    })),
  };
}
