import { parseRedisUrl, type RedisServers } from "@sluice/redis";
import { type Problem, SluiceError } from "sluice";
import { parseRedisNodes, type RedisNodes } from "./counters/redis-nodes.ts";

export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

/** `text`: lines for people on stderr, a greeting on stdout. `json`: one object per line on stdout, and nothing else. */
export const logFormats = ["text", "json"] as const;
export type LogFormat = (typeof logFormats)[number];

/** Everything the daemon can be told, parsed. */
export interface Settings {
  /** A policy file, or a folder of them. Undefined: the default policy alone. */
  readonly config: string | undefined;
  readonly host: string;
  /** 0 takes any free port. */
  readonly httpPort: number;
  readonly allowInsecure: boolean;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  readonly maxCounters: number;
  /** How many bits of an IPv6 address tell subjects apart. */
  readonly ipv6PrefixBits: number;
  readonly maxCounterBytes: number;
  readonly maxConnections: number;
  /** How long to go on accepting after being told to stop, while `/readyz` answers 503 already. */
  readonly drainMs: number;
  /** Whether the header `X-Idempotency-Key` gives a check its id where the body has none. */
  readonly idempotencyHeader: boolean;
  /** Whether `Retry-After` is lengthened at random, so that who was refused together does not come back together. */
  readonly retryJitter: boolean;
  /** Servers that hold the counters. Undefined: `redisNodes`, else what the policy files say, else this process's memory. */
  readonly redis: RedisServers | undefined;
  readonly redisNodes: RedisNodes | undefined;
  /** For servers whose address says nothing of it: whether to speak TLS, and who we are. */
  readonly redisTls: boolean | undefined;
  readonly redisUsername: string | undefined;
  readonly redisPassword: string | undefined;
  readonly redisSentinelUsername: string | undefined;
  readonly redisSentinelPassword: string | undefined;
  /** More servers than this are warned of: there is one connection to each. */
  readonly redisMaxConnections: number | undefined;
  /** Paths of files in PEM. */
  readonly redisCa: string | undefined;
  readonly redisCert: string | undefined;
  readonly redisKey: string | undefined;
  readonly redisServerName: string | undefined;
  readonly redisPrefix: string;
  readonly redisLanes: number;
  /** Path of a file that says whose counters live on servers of their own. */
  readonly redisCells: string | undefined;
  /** How long a check may wait for counters elsewhere, where its policies say nothing. Undefined: 25. */
  readonly deadlineMs: number | undefined;
}

type Reading<T> = { readonly kind: "value"; readonly value: T } | { readonly kind: "wrong"; readonly message: string };

/** One setting: what it is called in the environment and on the command line, and how its text is read. */
export interface SettingEntry<T> {
  readonly env: string;
  /** Undefined for what has no place on a command line, which everybody on the machine can read. */
  readonly flag: string | undefined;
  /** What stands behind the flag in `--help`; undefined for a switch. */
  readonly value: string | undefined;
  readonly help: string;
  readonly fallback: T;
  /** The fallback as it would be written, where that differs from the value. */
  readonly fallbackText?: string;
  readonly read: (text: string) => Reading<T>;
}

type SettingsTable = { readonly [Name in keyof Settings]: SettingEntry<Settings[Name]> };

export const settingsTable: SettingsTable = {
  config: {
    env: "RATE_LIMIT_CONFIG",
    flag: "--config",
    value: "<path>",
    help: "policy file (YAML or JSON), or a folder of them; watched for changes",
    fallback: undefined,
    read: (text) => right(text),
  },
  host: {
    env: "SLUICE_HOST",
    flag: "--host",
    value: "<address>",
    help: "address to listen on",
    fallback: "127.0.0.1",
    read: (text) =>
      /^(\[[\w.:%]+\]|[\w.:%-]+)$/.test(text) ? right(text) : wrong(text, "a host name or an IP address"),
  },
  httpPort: {
    env: "SLUICE_HTTP_PORT",
    flag: "--port",
    value: "<number>",
    help: "port for HTTP; 0 takes any free one",
    fallback: 8080,
    read: (text) => readWhole(text, 0, 65_535),
  },
  allowInsecure: {
    env: "SLUICE_ALLOW_INSECURE",
    flag: "--allow-insecure",
    value: undefined,
    help: "listen beyond loopback although there is neither TLS nor a token",
    fallback: false,
    read: readSwitch,
  },
  logLevel: {
    env: "SLUICE_LOG_LEVEL",
    flag: "--log-level",
    value: "<level>",
    help: logLevels.join(", "),
    fallback: "info",
    read: (text) => readWord(text, logLevels),
  },
  logFormat: {
    env: "SLUICE_LOG_FORMAT",
    flag: "--log-format",
    value: "<format>",
    help: "text (for people, on stderr) or json (one object per line, on stdout)",
    fallback: "text",
    read: (text) => readWord(text, logFormats),
  },
  maxCounters: {
    env: "SLUICE_MAX_COUNTERS",
    flag: "--max-counters",
    value: "<number>",
    help: "most counters held in memory; idle ones make room first",
    fallback: 4_000_000,
    read: (text) => readWhole(text, 1_000, 100_000_000),
  },
  maxCounterBytes: {
    env: "SLUICE_MAX_COUNTER_BYTES",
    flag: "--max-counter-bytes",
    value: "<number>",
    help: "most bytes that counters take in memory",
    fallback: 256 * 1024 * 1024,
    read: (text) => readWhole(text, 1024 * 1024, 64 * 1024 ** 3),
  },
  ipv6PrefixBits: {
    env: "SLUICE_IPV6_PREFIX",
    flag: "--ipv6-prefix",
    value: "<bits>",
    help: "how many bits of an IPv6 address tell subjects apart",
    fallback: 64,
    read: (text) => readWhole(text, 1, 128),
  },
  maxConnections: {
    env: "SLUICE_MAX_CONNECTIONS",
    flag: "--max-connections",
    value: "<number>",
    help: "most connections open at once; further ones are turned away",
    fallback: 10_000,
    read: (text) => readWhole(text, 1, 1_000_000),
  },
  drainMs: {
    env: "SLUICE_DRAIN",
    flag: "--drain",
    value: "<duration>",
    help: "after SIGTERM, how long to go on accepting while /readyz answers 503 already",
    fallback: 0,
    fallbackText: "0s",
    read: readDrain,
  },
  idempotencyHeader: {
    env: "SLUICE_IDEMPOTENCY_HEADER",
    flag: "--idempotency-header",
    value: undefined,
    help: "take a check's id from X-Idempotency-Key where the body has none; only where callers are trusted",
    fallback: false,
    read: readSwitch,
  },
  retryJitter: {
    env: "SLUICE_RETRY_JITTER",
    flag: "--retry-jitter",
    value: "<true|false>",
    help: "lengthen Retry-After at random, up to twice, so that not everybody comes back at once",
    fallback: true,
    read: readSwitch,
  },
  redis: {
    env: "SLUICE_REDIS_URL",
    flag: "--redis",
    value: "<url>",
    help: "servers that hold the counters: redis://, rediss://, unix://, redis+sentinel://, redis+cluster://",
    fallback: undefined,
    read: (text) => readAddress(() => parseRedisUrl(text)),
  },
  redisNodes: {
    env: "REDIS_CLUSTER_URL",
    flag: undefined,
    value: "<nodes>",
    help: "nodes of a cluster, or one server of any kind: host:port or redis://host:port, separated by commas",
    fallback: undefined,
    read: (text) => readAddress(() => parseRedisNodes(text)),
  },
  redisTls: {
    env: "REDIS_USE_TLS",
    flag: undefined,
    value: "<true|false>",
    help: "speak TLS with servers whose address does not say so",
    fallback: undefined,
    read: readSwitch,
  },
  redisUsername: {
    env: "REDIS_CLUSTER_USERNAME",
    flag: undefined,
    value: "<name>",
    help: "user of servers whose address names none",
    fallback: undefined,
    read: (text) => right(text),
  },
  redisPassword: {
    env: "REDIS_CLUSTER_PASSWORD",
    flag: undefined,
    value: "<password>",
    help: "password of servers whose address has none",
    fallback: undefined,
    read: (text) => right(text),
  },
  redisSentinelUsername: {
    env: "SLUICE_REDIS_SENTINEL_USERNAME",
    flag: undefined,
    value: "<name>",
    help: "user of the Sentinels themselves",
    fallback: undefined,
    read: (text) => right(text),
  },
  redisSentinelPassword: {
    env: "SLUICE_REDIS_SENTINEL_PASSWORD",
    flag: undefined,
    value: "<password>",
    help: "password of the Sentinels themselves",
    fallback: undefined,
    read: (text) => right(text),
  },
  redisMaxConnections: {
    env: "REDIS_MAX_CONN",
    flag: undefined,
    value: "<number>",
    help: "most connections to servers; there is one to each, and more servers than this are warned of",
    fallback: undefined,
    read: (text) => readWhole(text, 1, 100_000),
  },
  redisCa: {
    env: "SLUICE_REDIS_CA",
    flag: "--redis-ca",
    value: "<path>",
    help: "certificates of the authorities that servers are vouched for by, in PEM",
    fallback: undefined,
    read: (text) => right(text),
  },
  redisCert: {
    env: "SLUICE_REDIS_CERT",
    flag: "--redis-cert",
    value: "<path>",
    help: "certificate to show to servers, in PEM",
    fallback: undefined,
    read: (text) => right(text),
  },
  redisKey: {
    env: "SLUICE_REDIS_KEY",
    flag: "--redis-key",
    value: "<path>",
    help: "key of that certificate, in PEM",
    fallback: undefined,
    read: (text) => right(text),
  },
  redisServerName: {
    env: "SLUICE_REDIS_SERVER_NAME",
    flag: "--redis-server-name",
    value: "<name>",
    help: "name that servers' certificates must have, where that is not the host connected to",
    fallback: undefined,
    read: (text) => (/^[\w.*-]{1,255}$/.test(text) ? right(text) : wrong(text, "a host name")),
  },
  redisPrefix: {
    env: "SLUICE_REDIS_PREFIX",
    flag: "--redis-prefix",
    value: "<text>",
    help: "what every key begins with; deployments that share servers choose different ones",
    fallback: "s",
    read: (text) =>
      /^[\w.:-]{1,64}$/.test(text) ? right(text) : wrong(text, "1 to 64 letters, digits or . _ : - characters"),
  },
  redisLanes: {
    env: "SLUICE_REDIS_LANES",
    flag: "--redis-lanes",
    value: "<number>",
    help: "in a cluster, over how many hash tags counters are spread; the same on every server of Sluice",
    fallback: 32,
    read: (text) => readWhole(text, 1, 1024),
  },
  redisCells: {
    env: "SLUICE_REDIS_CELLS",
    flag: "--redis-cells",
    value: "<path>",
    help: "file (YAML or JSON) that says whose counters live on servers of their own",
    fallback: undefined,
    read: (text) => right(text),
  },
  deadlineMs: {
    env: "SLUICE_DEADLINE",
    flag: "--deadline",
    value: "<duration>",
    help: "how long a check waits for counters elsewhere before its policies' on_failure answers",
    fallback: undefined,
    fallbackText: "25ms",
    read: (text) => readDuration(text, 1, 60_000, "a duration from 1ms to 1m, such as 25ms"),
  },
};

export type SettingsReading =
  | { readonly kind: "settings"; readonly settings: Settings; readonly warnings: readonly Problem[] }
  | { readonly kind: "problems"; readonly problems: readonly Problem[] };

/** Reads settings from the environment and from flags, which win; every bad value is reported under its own name. */
export function parseSettings(
  env: Readonly<Record<string, string | undefined>>,
  flags: Partial<Readonly<Record<keyof Settings, string | undefined>>> = {},
): SettingsReading {
  const problems: Problem[] = [];

  function read<Name extends keyof Settings>(name: Name): Settings[Name] {
    const entry: SettingEntry<Settings[Name]> = settingsTable[name];
    const flag = flags[name];
    const text = flag ?? env[entry.env];
    // An empty variable is how many deployment tools say "not set"; an empty flag is a mistake.
    if (text === undefined || (flag === undefined && text === "")) return entry.fallback;
    const reading = entry.read(text.trim());
    if (reading.kind === "value") return reading.value;
    problems.push({ path: [flag === undefined ? entry.env : (entry.flag ?? entry.env)], message: reading.message });
    return entry.fallback;
  }

  const settings: Settings = {
    config: read("config"),
    host: read("host"),
    httpPort: read("httpPort"),
    allowInsecure: read("allowInsecure"),
    logLevel: read("logLevel"),
    logFormat: read("logFormat"),
    maxCounters: read("maxCounters"),
    ipv6PrefixBits: read("ipv6PrefixBits"),
    maxCounterBytes: read("maxCounterBytes"),
    maxConnections: read("maxConnections"),
    drainMs: read("drainMs"),
    idempotencyHeader: read("idempotencyHeader"),
    retryJitter: read("retryJitter"),
    redis: read("redis"),
    redisNodes: read("redisNodes"),
    redisTls: read("redisTls"),
    redisUsername: read("redisUsername"),
    redisPassword: read("redisPassword"),
    redisSentinelUsername: read("redisSentinelUsername"),
    redisSentinelPassword: read("redisSentinelPassword"),
    redisMaxConnections: read("redisMaxConnections"),
    redisCa: read("redisCa"),
    redisCert: read("redisCert"),
    redisKey: read("redisKey"),
    redisServerName: read("redisServerName"),
    redisPrefix: read("redisPrefix"),
    redisLanes: read("redisLanes"),
    redisCells: read("redisCells"),
    deadlineMs: read("deadlineMs"),
  };
  if (flags.config !== undefined && flags.config.trim() === "")
    problems.push({ path: ["--config"], message: "is empty; name a policy file or a folder of them" });
  if (!settings.allowInsecure && !isLoopback(settings.host)) {
    problems.push({
      path: [flags.host === undefined ? settingsTable.host.env : "--host"],
      message:
        `"${settings.host}" can be reached from other machines, and Sluice has neither TLS nor tokens yet, so anybody ` +
        "there could spend your limits. Listen on 127.0.0.1 behind a proxy, or say --allow-insecure " +
        "(SLUICE_ALLOW_INSECURE=true) if the network itself keeps strangers out",
    });
  }
  if (problems.length > 0) return { kind: "problems", problems };
  return { kind: "settings", settings, warnings: warningsOf(settings, flags) };
}

/** What is legal, and hardly meant. */
function warningsOf(
  { redis, redisNodes }: Settings,
  flags: Partial<Readonly<Record<keyof Settings, string | undefined>>>,
): readonly Problem[] {
  const warnings: Problem[] = [];
  if (flags.redis !== undefined && redis?.password !== undefined)
    warnings.push({
      path: ["--redis"],
      message:
        "holds a password, which everybody on this machine can read in the list of processes; put the address into " +
        "SLUICE_REDIS_URL, or the password into REDIS_CLUSTER_PASSWORD",
    });
  if (redis !== undefined && redisNodes !== undefined)
    warnings.push({
      path: [settingsTable.redisNodes.env],
      message: "is not used, because SLUICE_REDIS_URL or --redis names the servers as well",
    });
  return warnings;
}

/** A setting that turns out to be of no use once it is looked at: a file that is not there, a half of a pair. */
export class SettingError extends Error {
  override readonly name = "SettingError";

  constructor(names: readonly (keyof Settings)[], message: string) {
    super(`${names.map(nameOf).join(", ")}: ${message}`);
  }
}

/** What a setting is called: `SLUICE_REDIS_CA (--redis-ca)`. */
function nameOf(name: keyof Settings): string {
  const { env, flag }: SettingEntry<unknown> = settingsTable[name];
  return flag === undefined ? env : `${env} (${flag})`;
}

/** `--port: is "x"; it should be …`, a line each. */
export function renderSettingProblems(problems: readonly Problem[]): string {
  return problems.map(({ path, message }) => `${path.join(".")}: ${message}`).join("\n");
}

/** Whether only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return name === "localhost" || name === "::1" || /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}

function right<T>(value: T): Reading<T> {
  return { kind: "value", value };
}

function wrong<T>(text: string, expected: string): Reading<T> {
  return { kind: "wrong", message: `is ${JSON.stringify(text)}; it should be ${expected}` };
}

function readWhole(text: string, least: number, most: number): Reading<number> {
  const value = /^\d[\d_]*$/.test(text) ? Number(text.replaceAll("_", "")) : Number.NaN;
  return value >= least && value <= most ? right(value) : wrong(text, `a whole number from ${least} to ${most}`);
}

const maxDrainMs = 10 * 60 * 1000;

function readDrain(text: string): Reading<number> {
  return readDuration(text === "0" ? "0s" : text, 0, maxDrainMs, "a duration from 0s to 10m, such as 15s");
}

function readDuration(text: string, leastMs: number, mostMs: number, expected: string): Reading<number> {
  const [, amount, unit = "s"] = /^(\d{1,9})(ms|s|m)$/.exec(text) ?? [];
  const ms = Number(amount) * { ms: 1, s: 1_000, m: 60_000 }[unit as "ms" | "s" | "m"];
  return ms >= leastMs && ms <= mostMs ? right(ms) : wrong(text, expected);
}

/** The address itself stays out of the message: it may hold a password. */
function readAddress<T>(parse: () => T): Reading<T> {
  try {
    return right(parse());
  } catch (error) {
    if (error instanceof SluiceError && error.problems[0] !== undefined)
      return { kind: "wrong", message: error.problems[0].message };
    throw error;
  }
}

function readSwitch(text: string): Reading<boolean> {
  if (text === "true" || text === "1") return right(true);
  if (text === "false" || text === "0") return right(false);
  return wrong(text, "true or false");
}

function readWord<Word extends string>(text: string, words: readonly Word[]): Reading<Word> {
  const word = words.find((one) => one === text.toLowerCase());
  return word === undefined ? wrong(text, `one of ${words.join(", ")}`) : right(word);
}
