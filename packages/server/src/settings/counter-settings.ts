import { parseRedisUrl, type RedisServers } from "@sluice/redis";
import { parseRedisNodes, type RedisNodes } from "./redis-nodes.ts";
import {
  decimal,
  duration,
  durationIfGiven,
  path,
  type SettingEntry,
  text,
  textOr,
  whole,
  wholeIfGiven,
  word,
} from "./setting-entry.ts";
import { readAddress, readDatabase, readSwitch } from "./setting-readers.ts";

/** Counters in this process. */
export class MemorySettings {
  readonly maxCounters: SettingEntry<number> = whole(
    "--max-counters",
    "SLUICE_MAX_COUNTERS",
    "maximum number of counters in memory; idle ones are dropped first",
    { from: 1_000, to: 100_000_000, fallback: 4_000_000 },
  );
  /** Undefined: 256 MiB, or less in a small container. */
  readonly maxCounterBytes: SettingEntry<number | undefined> = {
    ...wholeIfGiven(
      "--max-counter-bytes",
      "SLUICE_MAX_COUNTER_BYTES",
      "maximum memory for counters, in bytes; in a container by default at most a quarter of its memory",
      { from: 1024 * 1024, to: 64 * 1024 ** 3 },
    ),
    fallbackText: "268435456",
  };
}

/** Counters on servers: where they are, and how to reach them. */
export class RedisSettings {
  /** Undefined: `redisNodes`, else the servers in the policy files, else this process's memory. */
  readonly redis: SettingEntry<RedisServers | undefined> = {
    flag: "--redis",
    env: "SLUICE_REDIS_URL",
    value: "<url>",
    help: "servers that hold the counters: redis://, rediss://, unix://, redis+sentinel://, redis+cluster://",
    fallback: undefined,
    read: (given) => readAddress(() => parseRedisUrl(given)),
  };
  readonly redisNodes: SettingEntry<RedisNodes | undefined> = {
    flag: undefined,
    env: "REDIS_CLUSTER_URL",
    value: "<nodes>",
    help: "nodes of a cluster, or one server of any kind: host:port or redis://host:port, comma-separated",
    fallback: undefined,
    read: (given) => readAddress(() => parseRedisNodes(given)),
  };
  readonly redisTls: SettingEntry<boolean | undefined> = {
    flag: undefined,
    env: "REDIS_USE_TLS",
    value: "<true|false>",
    help: "use TLS with servers whose address does not say",
    fallback: undefined,
    read: readSwitch,
  };
  readonly redisUsername: SettingEntry<string | undefined> = text(
    undefined,
    "REDIS_CLUSTER_USERNAME",
    "user for servers whose address names none",
    { value: "<name>" },
  );
  readonly redisPassword: SettingEntry<string | undefined> = text(
    undefined,
    "REDIS_CLUSTER_PASSWORD",
    "password for servers whose address has none",
    { value: "<password>" },
  );
  readonly redisPasswordFile: SettingEntry<string | undefined> = path(
    "--redis-password-file",
    "SLUICE_REDIS_PASSWORD_FILE",
    "file with the password for servers whose address has none, read again for every connection",
  );
  readonly redisSentinelUsername: SettingEntry<string | undefined> = text(
    undefined,
    "SLUICE_REDIS_SENTINEL_USERNAME",
    "user for the Sentinels themselves",
    { value: "<name>" },
  );
  readonly redisSentinelPassword: SettingEntry<string | undefined> = text(
    undefined,
    "SLUICE_REDIS_SENTINEL_PASSWORD",
    "password for the Sentinels themselves",
    { value: "<password>" },
  );
  readonly redisSentinelPasswordFile: SettingEntry<string | undefined> = path(
    "--redis-sentinel-password-file",
    "SLUICE_REDIS_SENTINEL_PASSWORD_FILE",
    "file with the password for the Sentinels themselves, read again for every connection",
  );
  /** There is one connection to each server, so this limits nothing, but triggers a warning. */
  readonly redisMaxConnections: SettingEntry<number | undefined> = wholeIfGiven(
    undefined,
    "REDIS_MAX_CONN",
    "number of servers above which to log a warning; there is one connection to each",
    { from: 1, to: 100_000 },
  );
  readonly redisCa: SettingEntry<string | undefined> = path(
    "--redis-ca",
    "SLUICE_REDIS_CA",
    "CA certificates for verifying Redis servers (PEM)",
  );
  readonly redisCert: SettingEntry<string | undefined> = path(
    "--redis-cert",
    "SLUICE_REDIS_CERT",
    "client certificate for Redis servers (PEM)",
  );
  readonly redisKey: SettingEntry<string | undefined> = path(
    "--redis-key",
    "SLUICE_REDIS_KEY",
    "private key of that certificate (PEM)",
  );
  readonly redisServerName: SettingEntry<string | undefined> = text(
    "--redis-server-name",
    "SLUICE_REDIS_SERVER_NAME",
    "name to expect in the servers' certificates, if it is not the host connected to",
    { value: "<name>", pattern: /^[\w.*-]{1,255}$/, expected: "a host name" },
  );
  readonly redisPrefix: SettingEntry<string> = textOr(
    "s",
    "--redis-prefix",
    "SLUICE_REDIS_PREFIX",
    "prefix of every key; deployments that share servers need different ones",
    { value: "<text>", pattern: /^[\w.:-]{1,64}$/, expected: "1 to 64 letters, digits or . _ : - characters" },
  );
  readonly redisLanes: SettingEntry<number> = whole(
    "--redis-lanes",
    "SLUICE_REDIS_LANES",
    "number of hash tags to spread counters over in a cluster; must be the same on every Sluice server",
    { from: 1, to: 1024, fallback: 32 },
  );
  readonly redisCells: SettingEntry<string | undefined> = path(
    "--redis-cells",
    "SLUICE_REDIS_CELLS",
    "file (YAML or JSON) that gives some tenants' counters dedicated servers",
  );
  readonly deadlineMs: SettingEntry<number | undefined> = durationIfGiven(
    "--deadline",
    "SLUICE_DEADLINE",
    "how long a check waits for remote counters before the policy's on_failure decides",
    { from: "1ms", to: "1m", fallback: "25ms" },
  );
}

/** Counters of policies with `counters: strong`. */
export class StrongSettings {
  /** Undefined: the database of the policy store. */
  readonly strongCounters: SettingEntry<string | undefined> = {
    flag: "--strong-counters",
    env: "SLUICE_STRONG_COUNTERS_URL",
    value: "<url>",
    help: "database for policies with counters: strong, if not the policy store's: postgres://… or sqlite:PATH",
    fallback: undefined,
    read: readDatabase,
  };
  readonly strongDeadlineMs: SettingEntry<number> = duration(
    "--strong-deadline",
    "SLUICE_STRONG_DEADLINE",
    "how long a check waits for strong counters before the policy's on_failure decides",
    { from: "10ms", to: "1m", fallback: "250ms" },
  );
}

/** Counters on servers that are decided here from leases. */
export class LeaseSettings {
  readonly leases: SettingEntry<"on" | "off"> = word(
    "--leases",
    "SLUICE_LEASES",
    "decide busy subjects locally from leases, within their policies' max_overshoot; needs counters on Redis",
    ["on", "off"],
    "on",
  );
  readonly leaseMs: SettingEntry<number> = duration(
    "--lease-time",
    "SLUICE_LEASE_TIME",
    "how long a lease is spent before it is renewed, or returned if unused",
    { from: "500ms", to: "1m", fallback: "20s" },
  );
  readonly leaseStaleMs: SettingEntry<number> = duration(
    "--lease-stale",
    "SLUICE_LEASE_STALE",
    "how much longer a lease is spent while the counters are unavailable; then on_failure decides",
    { from: "0s", to: "1h", fallback: "60s" },
  );
  readonly leaseHotPerSecond: SettingEntry<number> = decimal(
    "--lease-hot",
    "SLUICE_LEASE_HOT",
    "decisions per second that make a counter busy enough for a lease",
    { from: 0.01, to: 1_000_000, fallback: 0.35 },
  );
}
