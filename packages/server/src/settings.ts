import type { Problem } from "sluice";

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
}

type Reading<T> = { readonly kind: "value"; readonly value: T } | { readonly kind: "wrong"; readonly message: string };

/** One setting: what it is called in the environment and on the command line, and how its text is read. */
export interface SettingEntry<T> {
  readonly env: string;
  readonly flag: string;
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
};

export type SettingsReading =
  | { readonly kind: "settings"; readonly settings: Settings }
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
    problems.push({ path: [flag === undefined ? entry.env : entry.flag], message: reading.message });
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
  };
  if (flags.config !== undefined && flags.config.trim() === "")
    problems.push({ path: ["--config"], message: "is empty; name a policy file or a folder of them" });
  if (!settings.allowInsecure && !isLoopback(settings.host)) {
    problems.push({
      path: [flags.host === undefined ? settingsTable.host.env : settingsTable.host.flag],
      message:
        `"${settings.host}" can be reached from other machines, and Sluice has neither TLS nor tokens yet, so anybody ` +
        "there could spend your limits. Listen on 127.0.0.1 behind a proxy, or say --allow-insecure " +
        "(SLUICE_ALLOW_INSECURE=true) if the network itself keeps strangers out",
    });
  }
  return problems.length === 0 ? { kind: "settings", settings } : { kind: "problems", problems };
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
  const [, amount, unit = "s"] = /^(\d{1,9})(ms|s|m)$/.exec(text) ?? (text === "0" ? [text, text] : []);
  const ms = Number(amount) * { ms: 1, s: 1_000, m: 60_000 }[unit as "ms" | "s" | "m"];
  return ms <= maxDrainMs ? right(ms) : wrong(text, "a duration from 0s to 10m, such as 15s");
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
