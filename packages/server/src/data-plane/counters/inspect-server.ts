import { type Address, connectNodeRedis, type RedisConnection, type RedisServers } from "@sluice/redis";
import { withDeadline } from "../../with-deadline.ts";

/** A server's report about itself. */
export interface ServerFacts {
  /** `valkey 8.0.1`. */
  readonly product: string;
  /** The Redis version that it is compatible with. */
  readonly version: readonly [major: number, minor: number];
  readonly clustered: boolean;
  readonly replica: boolean;
  /** 0: as much memory as the machine has. */
  readonly maxMemoryBytes: number;
  readonly evictionPolicy: string;
  readonly evictedKeys: number;
}

/**
 * Asks a server about itself, over a temporary connection. Undefined if it does not answer in time, or does not let us
 * ask.
 */
export async function inspectServer(
  address: Address,
  servers: RedisServers,
  withinMs: number,
): Promise<ServerFacts | undefined> {
  let connection: RedisConnection | undefined;
  const asked = new Promise<unknown>((resolve, reject) => {
    connection = connectNodeRedis({ ...servers, database: undefined })(address, {
      // Called in a later turn, when `connection` is set.
      onReady: () => connection?.send(["INFO"]).then(resolve, reject),
      onLost: reject,
    });
  });
  try {
    return parseInfo(String(await withDeadline(asked, withinMs, () => new Error("no answer"))));
  } catch {
    return undefined;
  } finally {
    connection?.close();
  }
}

/** `10.0.0.1:6379`, `[::1]:6379` or `/run/valkey.sock`: the names of shards. */
export function parseShardName(name: string): Address {
  if (name.startsWith("/")) return { kind: "unix", path: name };
  const colon = name.lastIndexOf(":");
  return { kind: "tcp", host: name.slice(0, colon).replace(/^\[(.*)\]$/, "$1"), port: Number(name.slice(colon + 1)) };
}

export function parseInfo(info: string): ServerFacts {
  const fields = new Map(
    info
      .split(/\r?\n/)
      .filter((line) => line.includes(":"))
      .map((line): [string, string] => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]),
  );
  const field = (name: string): string => fields.get(name) ?? "";
  const valkey = field("valkey_version");
  const [major = 0, minor = 0] = field("redis_version").split(".").map(Number);
  return {
    product: valkey === "" ? `redis ${field("redis_version")}` : `valkey ${valkey}`,
    version: [major, minor],
    clustered: field("cluster_enabled") === "1",
    replica: field("role") === "slave",
    maxMemoryBytes: Number(field("maxmemory") || 0),
    evictionPolicy: field("maxmemory_policy"),
    evictedKeys: Number(field("evicted_keys") || 0),
  };
}

/** Policies that leave counters in use alone as long as there are other keys. */
const goodEviction = new Set(["noeviction", "volatile-lru", "volatile-lfu", ""]);

/** What an operator should know before counters go wrong, one sentence each. */
export function concernsAbout(facts: ServerFacts, kind: RedisServers["kind"]): readonly string[] {
  const concerns: string[] = [];
  const [major] = facts.version;
  if (major > 0 && major < 6)
    concerns.push("it is older than Redis 6.0, which giving back needs; use Valkey, or a later Redis");
  if (facts.replica)
    concerns.push("it is a replica, which refuses to be written to; name its primary, or the Sentinels that know it");
  if (facts.clustered && kind !== "cluster")
    concerns.push(
      "it is a node of a cluster, which holds a part of the keys only; write its address as redis+cluster://",
    );
  if (facts.maxMemoryBytes > 0 && !goodEviction.has(facts.evictionPolicy))
    concerns.push(
      `when its memory is full it forgets keys by ${facts.evictionPolicy}, counters in use among them; ` +
        "set maxmemory-policy to volatile-lru or noeviction",
    );
  if (facts.evictedKeys > 0)
    concerns.push(
      `it has forgotten ${facts.evictedKeys} keys because it ran out of memory; a forgotten counter starts over, so give it more`,
    );
  return concerns;
}
