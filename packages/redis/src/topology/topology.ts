import type { RedisArgument } from "../connect/redis-connection.ts";

/** One server that holds counters, by its name in breakers, metrics and logs. */
export interface Shard {
  readonly name: string;
  readonly ready: boolean;
  /**
   * Sends a command to this server. In a cluster, a command whose slot moved is forwarded there: this server did not
   * carry it out.
   */
  send(slot: number, args: readonly RedisArgument[]): Promise<unknown>;
  /** Drops a connection that is open and does not answer, and makes another. */
  renew(): void;
}

/** Which server holds what: one, the primary that Sentinels agree on, or the nodes of a cluster. */
export interface Topology {
  /** Whether slots are held by different servers, so that a call's keys must share one. */
  readonly clustered: boolean;
  /** The server that holds a slot. Undefined while that is not known. */
  findShard(slot: number): Shard | undefined;
  readonly shards: readonly Shard[];
  /** Something failed that reading the topology again may cure. Reads it once at a time, and not too often. */
  suspect(): void;
  close(): void;
}

/** Called with what happens to servers. */
export interface TopologyListener {
  onConnected(shard: string): void;
  onDisconnected(shard: string, error: Error): void;
  /** The primary changed, or slots moved. */
  onMoved(description: string): void;
}
