export type { AskCounts } from "./ask/lane.ts";
export type { ServerLoad } from "./ask/server-load.ts";
export { type CallFailure, callBoundsMs, callFailures, type ShardFigures } from "./ask/shard-figures.ts";
export { connectIoredis, type IoredisClient, type IoredisCluster } from "./connect/ioredis-connection.ts";
export {
  type ConnectionOptions,
  connectNodeRedis,
  type NodeRedisClient,
  type TlsOptions,
} from "./connect/node-redis-connection.ts";
export type {
  Address,
  Connect,
  ConnectionListener,
  RedisArgument,
  RedisConnection,
} from "./connect/redis-connection.ts";
export { parseRedisUrl, type RedisServers, renderServers } from "./connect/redis-servers.ts";
export { serversFromIoredis } from "./connect/servers-from-ioredis.ts";
export { serversFromNodeRedis } from "./connect/servers-from-node-redis.ts";
export type { Cell } from "./place/cells.ts";
export { type RedisSource, redis } from "./redis.ts";
export { openRedisChannel, type RedisChannel, type RedisChannelListener } from "./redis-channel.ts";
export { RedisCounters, type RedisCountersStats } from "./redis-counters.ts";
export type { RedisCountersOptions } from "./redis-counters-options.ts";
export { openRedisStream, type RedisStream, type RedisStreamOptions } from "./redis-stream.ts";
export type { RedisEvent, ShardStatus } from "./site.ts";
