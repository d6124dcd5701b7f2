import { SluiceError } from "sluice";
import type { IoredisClient, IoredisCluster } from "./connect/ioredis-connection.ts";
import type { NodeRedisClient } from "./connect/node-redis-connection.ts";
import { serversFromIoredis } from "./connect/servers-from-ioredis.ts";
import { serversFromNodeRedis } from "./connect/servers-from-node-redis.ts";
import { RedisCounters, type RedisCountersOptions } from "./redis-counters.ts";
import type { RedisServers } from "./redis-servers.ts";

/** Where the servers are: their address, everything there is to say of them, or a client that the app has. */
export type RedisSource = string | RedisServers | IoredisClient | IoredisCluster | NodeRedisClient;

/**
 * Counters in Valkey or Redis: `createLimiter({ counters: redis("redis://127.0.0.1:6379") })`. Takes a client of ioredis,
 * iovalkey or node-redis as well, and makes connections of its own that are like the client's; the client itself is neither
 * used nor closed. Nothing is opened until the first check.
 */
export function redis(source: RedisSource, options: Omit<RedisCountersOptions, "servers"> = {}): RedisCounters {
  return new RedisCounters({ ...options, servers: serversOf(source) });
}

function serversOf(source: RedisSource): string | RedisServers {
  if (typeof source === "string" || isServers(source)) return source;
  if (isNodeRedis(source)) return serversFromNodeRedis(source);
  if (isIoredis(source)) return serversFromIoredis(source);
  const message =
    "must be an address such as redis://127.0.0.1:6379, servers, or a client of ioredis, iovalkey or node-redis; " +
    "for a cluster or Sentinels of node-redis, give their addresses";
  throw new SluiceError("invalid_request", `source ${message}`, [{ path: ["source"], message }]);
}

function isServers(source: object): source is RedisServers {
  return "kind" in source && "addresses" in source;
}

function isNodeRedis(source: object): source is NodeRedisClient {
  // Its cluster and Sentinel clients are told from that of one server by what only that can do.
  return "isReady" in source && "duplicate" in source && "monitor" in source && !("status" in source);
}

function isIoredis(source: object): source is IoredisClient | IoredisCluster {
  return ("status" in source && "call" in source) || ("isCluster" in source && "nodes" in source);
}
