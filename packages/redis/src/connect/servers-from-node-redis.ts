import { connectLikeNodeRedis, type NodeRedisClient } from "./node-redis-connection.ts";
import type { RedisServers } from "./redis-servers.ts";

/**
 * The server of an application's node-redis client (5 or later), reached by connections like its own:
 *
 *     new RedisCounters({ servers: serversFromNodeRedis(client) })
 *
 * It is one server; name those of a cluster, and Sentinels, by their addresses.
 */
export function serversFromNodeRedis(client: NodeRedisClient): RedisServers {
  const { host, port, path, tls } = (client.options?.socket ?? {}) as {
    readonly host?: string;
    readonly port?: number;
    readonly path?: string;
    readonly tls?: boolean;
  };
  return {
    kind: "standalone",
    addresses: [
      path === undefined ? { kind: "tcp", host: host ?? "localhost", port: port ?? 6379 } : { kind: "unix", path },
    ],
    connect: connectLikeNodeRedis(client),
    ...(tls === true ? { tls: {} } : {}),
  };
}
