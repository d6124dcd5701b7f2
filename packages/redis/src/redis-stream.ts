import { errorFrom, type RedisArgument } from "./connect/redis-connection.ts";
import type { RedisServers } from "./connect/redis-servers.ts";
import { openTopology } from "./open-topology.ts";
import { tagSlot } from "./place/key-slot.ts";
import type { Shard } from "./topology/topology.ts";

/** Adds entries to one stream. The connection is a separate one, which comes back after a loss. */
export interface RedisStream {
  /**
   * Adds entries, each a list of fields and values, in order. Resolves when all are added. Rejects if any may not be, at the latest
   * when the signal is aborted: some of them may have been added.
   */
  append(entries: readonly (readonly RedisArgument[])[], signal: AbortSignal): Promise<void>;
  close(): void;
}

export interface RedisStreamOptions {
  /** Without braces: in a cluster the whole name decides where it is. */
  readonly key: string;
  /** About how many entries are kept; the oldest are removed. */
  readonly maxLength: number;
}

/** Never: a stream's connection carries a batch a second. */
const maxConnectionAgeMs = 24 * 60 * 60 * 1_000;

export function openRedisStream(servers: RedisServers, { key, maxLength }: RedisStreamOptions): RedisStream {
  let lastError: Error | undefined;
  let wake: () => void = () => undefined;
  const topology = openTopology(
    servers,
    {
      onConnected: () => wake(),
      onDisconnected: (_shard, error) => {
        lastError = error;
      },
      onMoved: () => wake(),
    },
    maxConnectionAgeMs,
  );
  const slot = topology.clustered ? tagSlot(key) : 0;
  const add: readonly RedisArgument[] = ["XADD", key, "MAXLEN", "~", String(maxLength), "*"];

  /** Waits until there is a connection, or the signal is aborted. */
  async function findShard(signal: AbortSignal): Promise<Shard> {
    for (;;) {
      const shard = topology.findShard(slot);
      if (shard?.ready === true) return shard;
      if (signal.aborted) throw new Error(lastError?.message ?? "there is no connection");
      topology.suspect();
      await new Promise<void>((resolve) => {
        wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }

  return {
    async append(entries, signal): Promise<void> {
      const shard = await findShard(signal);
      const onAbort = (): void => {
        // It is connected and does not answer.
        shard.renew();
        topology.suspect();
      };
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        // Sent one after the other, without waiting for the answers.
        await Promise.all(entries.map((entry) => shard.send(slot, [...add, ...entry])));
      } catch (error) {
        topology.suspect();
        throw errorFrom(error);
      } finally {
        signal.removeEventListener("abort", onAbort);
      }
    },
    close: () => topology.close(),
  };
}
