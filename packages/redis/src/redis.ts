import { SluiceError } from "sluice";
import { checkOptions } from "sluice/internal";
import type { IoredisClient, IoredisCluster } from "./connect/ioredis-connection.ts";
import type { NodeRedisClient } from "./connect/node-redis-connection.ts";
import type { RedisServers } from "./connect/redis-servers.ts";
import { serversFromIoredis } from "./connect/servers-from-ioredis.ts";
import { serversFromNodeRedis } from "./connect/servers-from-node-redis.ts";
import { RedisCounters } from "./redis-counters.ts";
import { optionForms, type RedisCountersOptions } from "./redis-counters-options.ts";

/** The servers: their address, all details, or an app's client. */
export type RedisSource = string | RedisServers | IoredisClient | IoredisCluster | NodeRedisClient;

/**
 * Counters in Valkey or Redis: `createLimiter({ counters: redis("redis://127.0.0.1:6379") })`. Also accepts a client of
 * ioredis, iovalkey or node-redis, and makes separate connections that are like the client's; the client itself is
 * neither used nor closed. Nothing is opened until the first check.
 */
export function redis(source: RedisSource, options: Omit<RedisCountersOptions, "servers"> = {}): RedisCounters {
  const { servers: _, ...forms } = optionForms;
  checkOptions(options, forms, { name: "redis", code: "invalid_request", foreign });
  return new RedisCounters({ ...options, servers: parseSource(source) });
}

/** Options of Redis clients. */
const foreign = {
  keyPrefix: "did you mean prefix?",
  ...inAddress("servers", "url", "host", "port", "username", "password", "db", "database", "tls", "socket"),
};

function inAddress(...names: readonly string[]): Record<string, string> {
  const message = "it belongs to the first argument: redis://user:password@host:6379/0, or servers in full";
  return Object.fromEntries(names.map((name) => [name, message]));
}

function parseSource(source: RedisSource): string | RedisServers {
  if (typeof source === "string") return source;
  if (typeof source === "object" && source !== null) {
    if (isServers(source)) return source;
    if (isNodeRedis(source)) return serversFromNodeRedis(source);
    if (isIoredis(source)) return serversFromIoredis(source);
  }
  const given = source === undefined ? "; it is undefined, so see whether a setting is missing" : "";
  const message =
    "must be an address such as redis://127.0.0.1:6379, servers, or a client of ioredis, iovalkey or node-redis; " +
    `for a cluster or Sentinels of node-redis, give their addresses${given}`;
  throw new SluiceError("invalid_request", `source ${message}`, [{ path: ["source"], message }]);
}

function isServers(source: object): source is RedisServers {
  return "kind" in source && "addresses" in source;
}

function isNodeRedis(source: object): source is NodeRedisClient {
  // Cluster and Sentinel clients differ from that of one server in what only the latter can do.
  return "isReady" in source && "duplicate" in source && "monitor" in source && !("status" in source);
}

function isIoredis(source: object): source is IoredisClient | IoredisCluster {
  return ("status" in source && "call" in source) || ("isCluster" in source && "nodes" in source);
}
