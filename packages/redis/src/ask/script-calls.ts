import type { RedisArgument } from "../connect/redis-connection.ts";
import type { Script } from "../scripts.generated.ts";
import type { Shard } from "../topology/topology.ts";

/**
 * Calls a script by its digest. Only if the server does not know the digest is the script itself sent, which also makes
 * it known there: on a new server, after a failover, after SCRIPT FLUSH. That is safe to repeat, because an unknown
 * script was not run.
 */
export function callScript(
  shard: Shard,
  slot: number,
  script: Script,
  keys: readonly string[],
  args: readonly RedisArgument[],
  onLoad?: () => void,
): Promise<unknown> {
  const count = String(keys.length);
  return shard.send(slot, ["EVALSHA", script.digest, count, ...keys, ...args]).catch((error: unknown) => {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    onLoad?.();
    return shard.send(slot, ["EVAL", script.source, count, ...keys, ...args]);
  });
}
