import type { RedisCountersStats } from "@sluice/redis";
import type { HotKeys } from "sluice";
import type { Logger } from "../../observe/telemetry/logger.ts";

type Shard = RedisCountersStats["shards"][number];
type Concern = "redis.saturated" | "redis.evicting" | "redis.clock_off";

/** A main thread that is busy for longer answers late at the next peak. */
export const saturatedFrom = 0.8;
/** Windows on a server begin and end by its clock. */
export const clockOffFromMs = 1_000;

const onceInMs = 600_000;
const maxKept = 1_000;
const hottestNamed = 3;

/**
 * Logs servers that are saturated, evict keys, or have another time. Each concern about a server is repeated every ten
 * minutes while it lasts. A saturated server is a sign of hot keys, so the hottest limits are named with it. One whose clock is
 * off is named with its replicas, to which an operator may fail over.
 */
export class LoadReports {
  readonly #log: Pick<Logger, "warn">;
  readonly #hotKeys: Pick<HotKeys, "top">;
  readonly #nowMs: () => number;
  /** When each was last reported, by concern and server. */
  readonly #reportedMs = new Map<string, number>();
  readonly #evicted = new Map<string, number>();

  constructor(log: Pick<Logger, "warn">, hotKeys: Pick<HotKeys, "top">, nowMs: () => number = () => performance.now()) {
    this.#log = log;
    this.#hotKeys = hotKeys;
    this.#nowMs = nowMs;
  }

  look(shards: readonly Shard[]): void {
    // Names of servers that are long gone. What is forgotten is at most reported once more.
    for (const kept of [this.#reportedMs, this.#evicted]) if (kept.size > maxKept) kept.clear();
    for (const shard of shards) {
      const { load, clockAheadMs = 0 } = shard;
      if (load?.cpu !== undefined && load.cpu > saturatedFrom && this.#isDue("redis.saturated", shard))
        this.#log.warn("redis.saturated", { ...named(shard), cpu: rounded(load.cpu), hottest: this.#findHottest() });
      const evicted = this.#countEvicted(shard);
      if (evicted > 0 && this.#isDue("redis.evicting", shard))
        this.#log.warn("redis.evicting", { ...named(shard), evicted });
      if (Math.abs(clockAheadMs) > clockOffFromMs && this.#isDue("redis.clock_off", shard))
        this.#log.warn("redis.clock_off", {
          ...named(shard),
          aheadMs: Math.round(clockAheadMs),
          replicas: load?.replicas.length ? load.replicas : undefined,
        });
    }
  }

  /** Since the last look; what it evicted before the first one is no news. */
  #countEvicted(shard: Shard): number {
    if (shard.load === undefined) return 0;
    const key = shardKey(shard);
    const before = this.#evicted.get(key) ?? shard.load.evictedKeys;
    this.#evicted.set(key, shard.load.evictedKeys);
    return shard.load.evictedKeys - before;
  }

  #isDue(concern: Concern, shard: Shard): boolean {
    const key = `${concern} ${shardKey(shard)}`;
    const nowMs = this.#nowMs();
    if (nowMs - (this.#reportedMs.get(key) ?? Number.NEGATIVE_INFINITY) < onceInMs) return false;
    this.#reportedMs.set(key, nowMs);
    return true;
  }

  /** Without their subjects: /v1/hot-keys shows those to callers who may read them. */
  #findHottest(): readonly string[] {
    return this.#hotKeys
      .top({ by: "rate", count: hottestNamed })
      .map(({ policy, scope, perSecond }) => `${policy} by ${scope}: ${Math.round(perSecond)}/s`);
  }
}

function named({ name: shard, cell }: Shard): { readonly shard: string; readonly cell: string | undefined } {
  return { shard, cell };
}

function shardKey({ name, cell = "" }: Shard): string {
  return `${cell} ${name}`;
}

function rounded(share: number): number {
  return Math.round(share * 100) / 100;
}
