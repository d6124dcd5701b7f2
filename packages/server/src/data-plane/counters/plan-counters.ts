import type { RedisServers, TlsOptions } from "@sluice/redis";
import { defaultDeadlineMs, maxDeadlineMs } from "sluice/internal";
import type { RateLimitsRuntime } from "sluice/policy-text";
import type { CircuitBreakerOptions } from "sluice/store";
import { SettingError } from "../../settings/parse-settings.ts";
import { findPasswordFile } from "../../settings/password-files.ts";
import type { Settings } from "../../settings/settings.ts";

/** Where counters will be, according to all settings. */
export type CountersPlan =
  | { readonly kind: "memory"; readonly idle: readonly string[] }
  | (RedisPlan & { readonly kind: "redis"; readonly idle: readonly string[] });

export interface RedisPlan {
  readonly servers: RedisServers;
  /** Whether to ask the server if it is a node of a cluster; until then it is assumed to be one. */
  readonly ofUnknownKind: boolean;
  readonly deadlineMs: number;
  readonly breaker: CircuitBreakerOptions;
}

type RuntimeRedis = NonNullable<RateLimitsRuntime["redis"]>;

/**
 * Combines the settings with the `runtime` block of policy files, which fills the gaps. `idle` names the fields of that
 * block that have no effect.
 */
export function planCounters(settings: Settings, runtime: RateLimitsRuntime = {}): CountersPlan {
  const { redis = {}, healthCheck } = runtime;
  const chosen = settings.redis ?? settings.redisNodes?.servers;
  const found = chosen ?? serversFromRuntime(redis);
  if (found === undefined) return { kind: "memory", idle: writtenIn(runtime, listGiven(redis)) };
  const idle: (keyof RuntimeRedis)[] = chosen === undefined ? [] : ["mode", "host", "port", "db"];
  if (settings.deadlineMs !== undefined) idle.push("socketTimeoutMs");
  const servers = withAccess(found, settings);
  return {
    kind: "redis",
    servers: { ...servers, ...findConnectTimeout(redis) },
    ofUnknownKind: settings.redis === undefined && settings.redisNodes?.ofUnknownKind === true,
    deadlineMs: settings.deadlineMs ?? Math.min(redis.socketTimeoutMs ?? defaultDeadlineMs, maxDeadlineMs),
    breaker: {
      ...(healthCheck?.failureThreshold === undefined ? undefined : { failuresInARow: healthCheck.failureThreshold }),
      ...(healthCheck?.checkIntervalMs === undefined ? undefined : { probeEveryMs: healthCheck.checkIntervalMs }),
    },
    idle: writtenIn({ redis }, idle),
  };
}

/** The credentials for servers whose address has none, and whether to use TLS. */
export function withAccess(servers: RedisServers, settings: Settings): RedisServers {
  const { redisTls, redisUsername, redisPassword, redisSentinelUsername, redisSentinelPassword } = settings;
  const readPassword = findPasswordFile("redisPasswordFile", settings)?.read;
  const readSentinelPassword = findPasswordFile("redisSentinelPasswordFile", settings)?.read;
  if (servers.tls !== undefined && redisTls === false)
    throw new SettingError(["redisTls"], "is false, and an address begins with rediss://, which asks for TLS");
  // An address with a password is complete: without a user it means the default one.
  const username = servers.username ?? (servers.password === undefined ? redisUsername : undefined);
  const password = servers.password ?? redisPassword;
  const tls: TlsOptions | undefined = servers.tls ?? (redisTls === true ? {} : undefined);
  return {
    ...servers,
    ...(username === undefined ? undefined : { username }),
    ...(password === undefined ? undefined : { password }),
    ...(password !== undefined || readPassword === undefined ? undefined : { readPassword }),
    ...(tls === undefined ? undefined : { tls }),
    ...(servers.kind !== "sentinel"
      ? undefined
      : { sentinelUsername: redisSentinelUsername, sentinelPassword: redisSentinelPassword, readSentinelPassword }),
  };
}

const defaultPorts = { standalone: 6379, cluster: 6379, sentinel: 26_379 } as const;

/** Undefined if the block names no servers. */
function serversFromRuntime({ mode = "standalone", host, port, db }: RuntimeRedis): RedisServers | undefined {
  if (host === undefined && port === undefined) return undefined;
  const name = (host ?? "127.0.0.1").replace(/^\[(.*)\]$/, "$1");
  return {
    kind: mode,
    addresses: [{ kind: "tcp", host: name, port: port ?? defaultPorts[mode] }],
    ...(db === undefined || mode === "cluster" ? undefined : { database: db }),
  };
}

function findConnectTimeout({ socketConnectTimeoutMs }: RuntimeRedis): Pick<RedisServers, "connectTimeoutMs"> {
  return socketConnectTimeoutMs === undefined ? {} : { connectTimeoutMs: socketConnectTimeoutMs };
}

const namesInFile: Readonly<Record<keyof RuntimeRedis, string>> = {
  mode: "mode",
  host: "host",
  port: "port",
  db: "db",
  connectionPoolSize: "connection_pool_size",
  socketTimeoutMs: "socket_timeout_ms",
  socketConnectTimeoutMs: "socket_connect_timeout_ms",
};

function listGiven(redis: RuntimeRedis): readonly (keyof RuntimeRedis)[] {
  return Object.keys(redis) as (keyof RuntimeRedis)[];
}

/** Which of these settings the block contains, by their names there. */
function writtenIn(
  { redis = {}, healthCheck }: Pick<RateLimitsRuntime, "redis" | "healthCheck">,
  names: readonly (keyof RuntimeRedis)[],
): readonly string[] {
  const idle = names.filter((name) => redis[name] !== undefined).map((name) => `redis.${namesInFile[name]}`);
  return healthCheck === undefined ? idle : [...idle, "health_check"];
}
