import { parseRedisUrl, type RedisServers } from "@sluice/redis";
import { parseRedisNodes, type RedisNodes } from "./redis-nodes.ts";
import {
  type Reading,
  readAddress,
  readDimensionHeaders,
  readDrain,
  readDuration,
  readHeaders,
  readList,
  readNumber,
  readPort,
  readShare,
  readSwitch,
  readUrl,
  readWhole,
  readWord,
  readWorkers,
  right,
  wrong,
} from "./setting-readers.ts";

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
  /** 0 takes any free port; undefined: not on a port. */
  readonly httpPort: number | undefined;
  readonly grpcPort: number | undefined;
  readonly respPort: number | undefined;
  /** The control plane's, where there is a policy store. */
  readonly adminPort: number | undefined;
  /** Paths of unix sockets to listen on as well, for sidecars. */
  readonly httpSocket: string | undefined;
  readonly grpcSocket: string | undefined;
  readonly respSocket: string | undefined;
  /** Paths of files in PEM: what we show, and who vouches for clients, which then must show a certificate. */
  readonly tlsCert: string | undefined;
  readonly tlsKey: string | undefined;
  readonly tlsClientCa: string | undefined;
  /** Names (SAN) of clients that are let in; empty: everybody whose certificate is vouched for. */
  readonly tlsClientNames: readonly string[];
  /** Path of a file that says who may do what. */
  readonly tokens: string | undefined;
  readonly allowInsecure: boolean;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  readonly maxCounters: number;
  /** How many bits of an IPv6 address tell subjects apart. */
  readonly ipv6PrefixBits: number;
  readonly maxCounterBytes: number;
  /** Most connections open at once, on each port. */
  readonly maxConnections: number;
  /** Most of them from one address. Undefined: three quarters of them. */
  readonly maxConnectionsPerAddress: number | undefined;
  /** Most checks that wait for counters elsewhere. */
  readonly maxPending: number;
  /** Most checks that this process decides in a second; 0: no bound. */
  readonly maxChecksPerSecond: number;
  readonly workers: number;
  /** Where policies are kept beside files: `postgres://…`, or `sqlite:PATH`. Undefined: nowhere, and there is no control plane. */
  readonly store: string | undefined;
  /** Path of a policy file that an empty store begins with. */
  readonly seed: string | undefined;
  /** Which wins where a policy file and the store both have a policy, or know of a subject. */
  readonly precedence: "files" | "store";
  /** How nodes hear of changes before they look for them. */
  readonly push: "auto" | "postgres" | "redis" | "none";
  /** How long the store may be away before that is told as an error. */
  readonly storeGraceMs: number;
  readonly auditRetentionMs: number;
  /** Where the first token is written to. Undefined: beside the file of the store, or here. */
  readonly adminTokenFile: string | undefined;
  /** What this server is called among nodes. Undefined: as its machine. */
  readonly nodeName: string | undefined;
  /** Path of a file that keeps the last good policies, to start with while theirs cannot be read. */
  readonly policySnapshot: string | undefined;
  /** Which headers of a sub-request become which dimensions: `{ user: "x-user-id" }`. */
  readonly authorizeDimensions: Readonly<Record<string, string>>;
  /** Whether Envoy is told to add `RateLimit-*` headers to its answers. */
  readonly envoyHeaders: boolean;
  /** Share of decisions that are logged, where the level is debug. */
  readonly logSample: number;
  /** Whether subjects are logged as hashes only. */
  readonly logHashSubjects: boolean;
  /** Where traces are sent, by OTLP over HTTP. Undefined: there are none. */
  readonly otlpEndpoint: string | undefined;
  /** What goes with them, names in lower case. */
  readonly otlpHeaders: Readonly<Record<string, string>>;
  /** Under which name. */
  readonly otlpServiceName: string;
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
  /** Whether busy subjects are decided here from leases, where counters are on servers. */
  readonly leases: "on" | "off";
  /** For how long a lease is spent before it is renewed or given back. */
  readonly leaseMs: number;
  /** For how much longer, while the counters do not answer. */
  readonly leaseStaleMs: number;
  /** From how many decisions a second on a counter is leased. */
  readonly leaseHotPerSecond: number;
  /** How many of the hottest counters have metrics of their own. */
  readonly hotKeyMetrics: number;
}

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
    help: "port for HTTP; 0 takes any free one, off none",
    fallback: 8080,
    read: readPort,
  },
  grpcPort: {
    env: "SLUICE_GRPC_PORT",
    flag: "--grpc-port",
    value: "<number>",
    help: "port for gRPC; 0 takes any free one, off none",
    fallback: 8081,
    read: readPort,
  },
  adminPort: {
    env: "SLUICE_ADMIN_PORT",
    flag: "--admin-port",
    value: "<number>",
    help: "port for the control plane, where there is a policy store; 0 takes any free one, off none",
    fallback: 8090,
    read: readPort,
  },
  respPort: {
    env: "SLUICE_RESP_PORT",
    flag: "--resp-port",
    value: "<number>",
    help: "port for Redis clients (conventionally 6380); 0 takes any free one, off none",
    fallback: undefined,
    fallbackText: "off",
    read: readPort,
  },
  httpSocket: {
    env: "SLUICE_HTTP_SOCKET",
    flag: "--http-socket",
    value: "<path>",
    help: "unix socket for HTTP, beside the port",
    fallback: undefined,
    read: (text) => right(text),
  },
  grpcSocket: {
    env: "SLUICE_GRPC_SOCKET",
    flag: "--grpc-socket",
    value: "<path>",
    help: "unix socket for gRPC, beside the port",
    fallback: undefined,
    read: (text) => right(text),
  },
  respSocket: {
    env: "SLUICE_RESP_SOCKET",
    flag: "--resp-socket",
    value: "<path>",
    help: "unix socket for Redis clients, beside the port",
    fallback: undefined,
    read: (text) => right(text),
  },
  tlsCert: {
    env: "SLUICE_TLS_CERT",
    flag: "--tls-cert",
    value: "<path>",
    help: "certificate to show on every port, in PEM; read again when it changes",
    fallback: undefined,
    read: (text) => right(text),
  },
  tlsKey: {
    env: "SLUICE_TLS_KEY",
    flag: "--tls-key",
    value: "<path>",
    help: "key of that certificate, in PEM",
    fallback: undefined,
    read: (text) => right(text),
  },
  tlsClientCa: {
    env: "SLUICE_TLS_CLIENT_CA",
    flag: "--tls-client-ca",
    value: "<path>",
    help: "authorities that vouch for clients, in PEM; clients without a certificate of theirs are turned away",
    fallback: undefined,
    read: (text) => right(text),
  },
  tlsClientNames: {
    env: "SLUICE_TLS_CLIENT_NAMES",
    flag: "--tls-client-names",
    value: "<names>",
    help: "names that clients' certificates may have (SAN), separated by commas, such as gateway.internal,spiffe://acme/envoy",
    fallback: [],
    fallbackText: "any",
    read: (text) => readList(text),
  },
  tokens: {
    env: "SLUICE_TOKENS",
    flag: "--tokens",
    value: "<path>",
    help: "file of bearer tokens and their roles, made with sluice token; read again when it changes",
    fallback: undefined,
    read: (text) => right(text),
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
    help: "most connections open at once on each port; further ones are turned away",
    fallback: 10_000,
    read: (text) => readWhole(text, 1, 1_000_000),
  },
  maxConnectionsPerAddress: {
    env: "SLUICE_MAX_CONNECTIONS_PER_ADDRESS",
    flag: "--max-connections-per-address",
    value: "<number>",
    help: "most connections open at once from one address on each port; three quarters of --max-connections by default",
    fallback: undefined,
    read: (text) => readWhole(text, 1, 1_000_000),
  },
  maxPending: {
    env: "SLUICE_MAX_PENDING",
    flag: "--max-pending",
    value: "<number>",
    help: "most checks that wait for counters elsewhere; further ones are refused at once",
    fallback: 10_000,
    read: (text) => readWhole(text, 1, 1_000_000),
  },
  maxChecksPerSecond: {
    env: "SLUICE_MAX_CHECKS_PER_SECOND",
    flag: "--max-checks-per-second",
    value: "<number>",
    help: "most checks that one process decides in a second; further ones are refused at once; 0 for no bound",
    fallback: 100_000,
    read: (text) => readWhole(text, 0, 10_000_000),
  },
  workers: {
    env: "SLUICE_WORKERS",
    flag: "--workers",
    value: "<number|auto>",
    help: "processes behind the same ports, for counters on servers; auto: one per core",
    fallback: 1,
    read: readWorkers,
  },
  store: {
    env: "SLUICE_STORE_URL",
    flag: "--store",
    value: "<url>",
    help: "policy store: postgres://… or sqlite:PATH; there is a control plane then",
    fallback: undefined,
    read: (text) =>
      /^(postgres(ql)?:\/\/|sqlite:)./.test(text)
        ? right(text)
        : // It may hold a password, and is not repeated.
          { kind: "wrong", message: "should be postgres://user@host/database, or sqlite:PATH" },
  },
  seed: {
    env: "SLUICE_SEED",
    flag: "--seed",
    value: "<path>",
    help: "policy file that an empty policy store begins with",
    fallback: undefined,
    read: (text) => right(text),
  },
  precedence: {
    env: "SLUICE_POLICY_PRECEDENCE",
    flag: "--policy-precedence",
    value: "<files|store>",
    help: "which wins where a policy file and the policy store have the same policy",
    fallback: "files",
    read: (text) => readWord(text, ["files", "store"]),
  },
  push: {
    env: "SLUICE_PUSH",
    flag: "--push",
    value: "<auto|postgres|redis|none>",
    help: "how nodes hear of changed policies at once; they look every second as well",
    fallback: "auto",
    read: (text) => readWord(text, ["auto", "postgres", "redis", "none"]),
  },
  storeGraceMs: {
    env: "SLUICE_STORE_GRACE",
    flag: "--store-grace",
    value: "<duration>",
    help: "how long the policy store may be unavailable before that is an error, such as 1h",
    fallback: 3_600_000,
    fallbackText: "1h",
    read: (text) => readDuration(text, 1_000, 30 * 86_400_000, "a duration from 1s to 30d, such as 1h"),
  },
  auditRetentionMs: {
    env: "SLUICE_AUDIT_RETENTION",
    flag: "--audit-retention",
    value: "<duration>",
    help: "how long the audit is kept, such as 90d",
    fallback: 90 * 86_400_000,
    fallbackText: "90d",
    read: (text) => readDuration(text, 86_400_000, 3_653 * 86_400_000, "a duration from 1d to 3653d, such as 90d"),
  },
  adminTokenFile: {
    env: "SLUICE_ADMIN_TOKEN_FILE",
    flag: "--admin-token-file",
    value: "<path>",
    help: "where the first admin token is written to, for its owner alone",
    fallback: undefined,
    read: (text) => right(text),
  },
  nodeName: {
    env: "SLUICE_NODE_NAME",
    flag: "--node-name",
    value: "<name>",
    help: "what this server is called among nodes; its machine's name by default",
    fallback: undefined,
    read: (text) => (/^[\w.:-]{1,64}$/.test(text) ? right(text) : wrong(text, "up to 64 letters, digits or . _ : -")),
  },
  policySnapshot: {
    env: "SLUICE_POLICY_SNAPSHOT",
    flag: "--policy-snapshot",
    value: "<path>",
    help: "file that keeps the last good policies, to start with when the policy files cannot be used",
    fallback: undefined,
    read: (text) => right(text),
  },
  authorizeDimensions: {
    env: "SLUICE_AUTHORIZE_DIMENSIONS",
    flag: "--authorize-dimensions",
    value: "<dimension=header,…>",
    help: "which headers of GET /v1/authorize are which dimensions, such as user=x-user-id,tenant=x-tenant",
    fallback: {},
    fallbackText: "none",
    read: readDimensionHeaders,
  },
  envoyHeaders: {
    env: "SLUICE_ENVOY_HEADERS",
    flag: "--envoy-headers",
    value: undefined,
    help: "have Envoy add RateLimit-Limit, -Remaining and -Reset to its answers",
    fallback: false,
    read: readSwitch,
  },
  logSample: {
    env: "SLUICE_LOG_SAMPLE",
    flag: "--log-sample",
    value: "<share>",
    help: "share of decisions that are logged at level debug, 0 to 1",
    fallback: 1,
    read: readShare,
  },
  logHashSubjects: {
    env: "SLUICE_LOG_HASH_SUBJECTS",
    flag: "--log-hash-subjects",
    value: undefined,
    help: "log subjects as hashes only",
    fallback: false,
    read: readSwitch,
  },
  otlpEndpoint: {
    env: "OTEL_EXPORTER_OTLP_ENDPOINT",
    flag: "--otlp-endpoint",
    value: "<url>",
    help: "where traces are sent, by OTLP over HTTP; without it there are none",
    fallback: undefined,
    read: readUrl,
  },
  otlpHeaders: {
    env: "OTEL_EXPORTER_OTLP_HEADERS",
    flag: undefined,
    value: "<header=value,…>",
    help: "headers that go with traces, such as the collector's key; values percent-encoded",
    fallback: {},
    fallbackText: "none",
    read: readHeaders,
  },
  otlpServiceName: {
    env: "OTEL_SERVICE_NAME",
    flag: undefined,
    value: "<name>",
    help: "service that traces are sent as",
    fallback: "sluice",
    read: (text) => (/^[^\p{Cc}]{1,255}$/u.test(text) ? right(text) : wrong(text, "a name of 1 to 255 characters")),
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
    help: "CA certificates for verifying Redis servers, in PEM",
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
  leases: {
    env: "SLUICE_LEASES",
    flag: "--leases",
    value: "<on|off>",
    help: "decide busy subjects from leases, within their policies' max_overshoot, where counters are on servers",
    fallback: "on",
    read: (text) => readWord(text, ["on", "off"]),
  },
  leaseMs: {
    env: "SLUICE_LEASE_TIME",
    flag: "--lease-time",
    value: "<duration>",
    help: "how long a lease is spent before it is renewed, or given back if it is no longer used",
    fallback: 20_000,
    fallbackText: "20s",
    read: (text) => readDuration(text, 500, 60_000, "a duration from 500ms to 1m, such as 20s"),
  },
  leaseStaleMs: {
    env: "SLUICE_LEASE_STALE",
    flag: "--lease-stale",
    value: "<duration>",
    help: "how much longer a lease is spent while the counters do not answer; then on_failure answers",
    fallback: 60_000,
    fallbackText: "60s",
    read: (text) => readDuration(text === "0" ? "0s" : text, 0, 3_600_000, "a duration from 0s to 1h, such as 60s"),
  },
  leaseHotPerSecond: {
    env: "SLUICE_LEASE_HOT",
    flag: "--lease-hot",
    value: "<number>",
    help: "how many decisions a second make a counter busy enough for a lease",
    fallback: 0.35,
    read: (text) => readNumber(text, 0.01, 1_000_000),
  },
  hotKeyMetrics: {
    env: "SLUICE_HOT_KEY_METRICS",
    flag: "--hot-key-metrics",
    value: "<number>",
    help: "how many of the hottest counters have separate metrics, with their subjects as labels",
    fallback: 0,
    read: (text) => readWhole(text, 0, 50),
  },
};
