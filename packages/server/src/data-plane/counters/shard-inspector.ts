import type { RedisCounters, RedisServers } from "@sluice/redis";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { concernsAbout, inspectServer, parseShardName } from "./inspect-server.ts";
import type { ServedCell } from "./read-redis-files.ts";

const inspectWithinMs = 1_000;
const maxInspected = 10_000;

export interface ShardInspectorOptions {
  readonly cells: readonly ServedCell[];
  readonly log: Logger;
  /** Warn if there are more servers than this: there is one connection to each. */
  readonly maxConnections: number | undefined;
}

/** Asks every connected server about itself, once, and warns about settings that lose counters or time. */
export class ShardInspector {
  readonly #options: ShardInspectorOptions;
  readonly #inspected = new Set<string>();
  #warnedOfMany = false;

  constructor(options: ShardInspectorOptions) {
    this.#options = options;
  }

  /** `servers` are those of every shard that belongs to no cell. Ends early once `isStopped`. */
  async inspectNew(
    { shards }: Pick<RedisCounters["stats"], "shards">,
    servers: RedisServers,
    isStopped: () => boolean,
  ): Promise<void> {
    if (this.#inspected.size > maxInspected) this.#inspected.clear();
    for (const { name, cell, connected } of shards) {
      const key = `${cell ?? ""} ${name}`;
      if (!connected || this.#inspected.has(key) || isStopped()) continue;
      this.#inspected.add(key);
      await this.#inspect(name, this.#options.cells.find((one) => one.name === cell)?.servers ?? servers);
    }
    this.#warnOfMany(shards.length);
  }

  async #inspect(shard: string, at: RedisServers): Promise<void> {
    const { log } = this.#options;
    const facts = await inspectServer(parseShardName(shard), at, inspectWithinMs);
    if (facts === undefined) return;
    log.debug("redis.inspected", { shard, ...facts });
    for (const concern of concernsAbout(facts, at.kind))
      log.warn("redis.misconfigured", { shard, product: facts.product, concern });
  }

  #warnOfMany(servers: number): void {
    const { log, maxConnections: most } = this.#options;
    if (most === undefined || servers <= most || this.#warnedOfMany) return;
    this.#warnedOfMany = true;
    log.warn("counters.too_few_connections", { servers, most });
  }
}
