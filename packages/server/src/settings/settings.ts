import { LeaseSettings, MemorySettings, RedisSettings, StrongSettings } from "./counter-settings.ts";
import { KafkaSettings } from "./kafka-settings.ts";
import { ObserveSettings } from "./observe-settings.ts";
import { RecordingSettings } from "./recording-settings.ts";
import {
  duration,
  flag,
  path,
  port,
  type SettingEntry,
  text,
  textOr,
  whole,
  wholeIfGiven,
  word,
} from "./setting-entry.ts";
import { readDatabase, readDimensionHeaders, readList, readSwitch, readWorkers, right } from "./setting-readers.ts";
import { UsageEventSettings } from "./usage-event-settings.ts";

/*
 * Every setting is declared once, here and in the *-settings.ts next to this file: its name and type, with its flag,
 * variable and help. `Settings` follows from these classes, and so do `serve --help`, with a heading for each class, and the tests of
 * docs/cli.md. They are classes because a field carries its type, which the declarations of this package need.
 */

class PolicySettings {
  /** Undefined: only the default policy. */
  readonly config: SettingEntry<string | undefined> = path(
    "--config",
    "RATE_LIMIT_CONFIG",
    "policy file (YAML or JSON), or a folder of them; reloaded when it changes",
  );
  readonly policySnapshot: SettingEntry<string | undefined> = path(
    "--policy-snapshot",
    "SLUICE_POLICY_SNAPSHOT",
    "file that keeps the last good policies, used at startup if the current ones cannot be read",
  );
}

class StoreSettings {
  /** Undefined: there is neither store nor control plane. */
  readonly store: SettingEntry<string | undefined> = {
    flag: "--store",
    env: "SLUICE_STORE_URL",
    value: "<url>",
    help: "policy store, which also starts the control plane: postgres://… or sqlite:PATH",
    fallback: undefined,
    read: readDatabase,
  };
  readonly storePasswordFile: SettingEntry<string | undefined> = path(
    "--store-password-file",
    "SLUICE_STORE_PASSWORD_FILE",
    "file with the password of the policy store, if its address has none; read again for every connection",
  );
  readonly seed: SettingEntry<string | undefined> = path(
    "--seed",
    "SLUICE_SEED",
    "policy file to fill an empty policy store with",
  );
  /** 0 takes any free port; undefined is off. The same holds for the other ports. */
  readonly adminPort: SettingEntry<number | undefined> = port(
    "--admin-port",
    "SLUICE_ADMIN_PORT",
    "port for the control plane (0 = any free port, off = none); needs a policy store",
    8090,
  );
  /** Undefined: next to the file of the store, or in the current folder. */
  readonly adminTokenFile: SettingEntry<string | undefined> = path(
    "--admin-token-file",
    "SLUICE_ADMIN_TOKEN_FILE",
    "where to write the first admin token, readable by its owner only",
  );
  /** Read only while the store has no usable admin token. */
  readonly adminTokenFrom: SettingEntry<string | undefined> = path(
    "--admin-token-from",
    "SLUICE_ADMIN_TOKEN_FROM",
    "file that holds the first admin token, such as a mounted secret; without it, the first start makes one",
  );
  readonly console: SettingEntry<boolean> = {
    flag: "--console",
    env: "SLUICE_CONSOLE",
    value: "<true|false>",
    help: "serve the web console on the admin port",
    fallback: true,
    read: readSwitch,
  };
  readonly consoleHosts: SettingEntry<readonly string[]> = {
    flag: "--console-hosts",
    env: "SLUICE_CONSOLE_HOSTS",
    value: "<names>",
    help: "names under which browsers reach the admin port, such as sluice.example; loopback and its own address need none",
    fallback: [],
    fallbackText: "none",
    read: readList,
  };
  readonly precedence: SettingEntry<"files" | "store"> = word(
    "--policy-precedence",
    "SLUICE_POLICY_PRECEDENCE",
    "which one wins if a policy file and the policy store both have a policy or a subject",
    ["files", "store"],
    "files",
  );
  readonly push: SettingEntry<"auto" | "postgres" | "redis" | "kafka" | "none"> = word(
    "--push",
    "SLUICE_PUSH",
    "how nodes are notified of policy changes; they also poll every second",
    ["auto", "postgres", "redis", "kafka", "none"],
    "auto",
  );
  readonly storeGraceMs: SettingEntry<number> = duration(
    "--store-grace",
    "SLUICE_STORE_GRACE",
    "how long the policy store may be unavailable before that is an error",
    { from: "1s", to: "30d", fallback: "1h" },
  );
  readonly auditRetentionMs: SettingEntry<number> = duration(
    "--audit-retention",
    "SLUICE_AUDIT_RETENTION",
    "how long to keep the audit log",
    { from: "1d", to: "3653d", fallback: "90d" },
  );
  readonly usageBy: SettingEntry<readonly string[]> = {
    flag: "--usage-by",
    env: "SLUICE_USAGE_BY",
    value: "<names>",
    help: "dimensions whose subjects have a usage history of their own, such as tenant,user; off: no history at all",
    fallback: ["tenant"],
    fallbackText: "tenant",
    read: (text) => (text === "off" ? right([]) : readList(text)),
  };
  readonly usageRetentionMs: SettingEntry<number> = duration(
    "--usage-retention",
    "SLUICE_USAGE_RETENTION",
    "how long to keep usage minute by minute",
    { from: "2d", to: "366d", fallback: "30d" },
  );
  readonly usageTotalsRetentionMs: SettingEntry<number> = duration(
    "--usage-totals-retention",
    "SLUICE_USAGE_TOTALS_RETENTION",
    "how long to keep usage by hours and days",
    { from: "2d", to: "3653d", fallback: "365d" },
  );
  readonly denialRetentionMs: SettingEntry<number> = duration(
    "--denial-retention",
    "SLUICE_DENIAL_RETENTION",
    "how long to keep records of denials; 0: records none",
    { from: "0s", to: "90d", fallback: "3d" },
  );
  /** Undefined: the machine's name. */
  readonly nodeName: SettingEntry<string | undefined> = text(
    "--node-name",
    "SLUICE_NODE_NAME",
    "name of this server among the nodes (default: the host name)",
    { value: "<name>", pattern: /^[\w.:-]{1,64}$/, expected: "up to 64 letters, digits or . _ : -" },
  );
}

class ListenSettings {
  readonly host: SettingEntry<string> = textOr("127.0.0.1", "--host", "SLUICE_HOST", "address to listen on", {
    value: "<address>",
    pattern: /^(\[[\w.:%]+\]|[\w.:%-]+)$/,
    expected: "a host name or an IP address",
  });
  readonly httpPort: SettingEntry<number | undefined> = port(
    "--port",
    "SLUICE_HTTP_PORT",
    "port for HTTP (0 = any free port, off = none)",
    8080,
  );
  readonly grpcPort: SettingEntry<number | undefined> = port(
    "--grpc-port",
    "SLUICE_GRPC_PORT",
    "port for gRPC (0 = any free port, off = none)",
    8081,
  );
  readonly respPort: SettingEntry<number | undefined> = port(
    "--resp-port",
    "SLUICE_RESP_PORT",
    "port for Redis clients (conventionally 6380; 0 = any free port)",
  );
  readonly httpSocket: SettingEntry<string | undefined> = path(
    "--http-socket",
    "SLUICE_HTTP_SOCKET",
    "unix socket for HTTP, as well as the port",
  );
  readonly grpcSocket: SettingEntry<string | undefined> = path(
    "--grpc-socket",
    "SLUICE_GRPC_SOCKET",
    "unix socket for gRPC, as well as the port",
  );
  readonly respSocket: SettingEntry<string | undefined> = path(
    "--resp-socket",
    "SLUICE_RESP_SOCKET",
    "unix socket for Redis clients, as well as the port",
  );
  readonly grpcEngine: SettingEntry<"sluice" | "grpc-js"> = word(
    "--grpc-engine",
    "SLUICE_GRPC_ENGINE",
    "which HTTP/2 server carries gRPC: Sluice's, or Node's with grpc-js",
    ["sluice", "grpc-js"],
    "sluice",
  );
  /** 0: never. */
  readonly grpcMaxConnectionAgeMs: SettingEntry<number> = duration(
    "--grpc-max-connection-age",
    "SLUICE_GRPC_MAX_CONNECTION_AGE",
    "age at which gRPC clients are asked to reconnect, give or take a tenth (0s = never)",
    { from: "0s", to: "7d", fallback: "0s", example: "30m" },
  );
  readonly maxConnections: SettingEntry<number> = whole(
    "--max-connections",
    "SLUICE_MAX_CONNECTIONS",
    "maximum number of open connections per port; more are refused",
    { from: 1, to: 1_000_000, fallback: 10_000 },
  );
  /** Undefined: three quarters of `maxConnections`. */
  readonly maxConnectionsPerAddress: SettingEntry<number | undefined> = wholeIfGiven(
    "--max-connections-per-address",
    "SLUICE_MAX_CONNECTIONS_PER_ADDRESS",
    "maximum number of open connections per port and client address (default: three quarters of --max-connections)",
    { from: 1, to: 1_000_000 },
  );
  /** 0: one per core. */
  readonly workers: SettingEntry<number> = {
    flag: "--workers",
    env: "SLUICE_WORKERS",
    value: "<number|auto>",
    help: "number of processes that share the ports (auto = one per core); needs counters on Redis",
    fallback: 1,
    read: readWorkers,
  };
  readonly drainMs: SettingEntry<number> = duration(
    "--drain",
    "SLUICE_DRAIN",
    "how long to keep accepting connections after SIGTERM, while /readyz already answers 503",
    { from: "0s", to: "10m", fallback: "0s", example: "15s" },
  );
  readonly notify: SettingEntry<boolean> = flag(
    "--notify",
    "SLUICE_NOTIFY",
    "report to systemd when the server is ready, alive and stopping, for units of Type=notify",
  );
}

class AccessSettings {
  readonly tlsCert: SettingEntry<string | undefined> = path(
    "--tls-cert",
    "SLUICE_TLS_CERT",
    "TLS certificate for every port (PEM); reloaded when it changes",
  );
  readonly tlsKey: SettingEntry<string | undefined> = path(
    "--tls-key",
    "SLUICE_TLS_KEY",
    "private key of that certificate (PEM)",
  );
  readonly tlsClientCa: SettingEntry<string | undefined> = path(
    "--tls-client-ca",
    "SLUICE_TLS_CLIENT_CA",
    "CA certificates for verifying clients (PEM); clients without a valid certificate are refused",
  );
  /** Empty: every client whose certificate is valid. */
  readonly tlsClientNames: SettingEntry<readonly string[]> = {
    flag: "--tls-client-names",
    env: "SLUICE_TLS_CLIENT_NAMES",
    value: "<names>",
    help: "client certificate names (SAN) to accept, comma-separated, such as gateway.internal,spiffe://acme/envoy",
    fallback: [],
    fallbackText: "any",
    read: readList,
  };
  readonly tokens: SettingEntry<string | undefined> = path(
    "--tokens",
    "SLUICE_TOKENS",
    "file of bearer tokens and their roles, made with sluice token; reloaded when it changes",
  );
  readonly allowInsecure: SettingEntry<boolean> = flag(
    "--allow-insecure",
    "SLUICE_ALLOW_INSECURE",
    "listen beyond loopback with neither TLS nor tokens",
  );
}

class CheckSettings {
  readonly maxPending: SettingEntry<number> = whole(
    "--max-pending",
    "SLUICE_MAX_PENDING",
    "maximum number of checks waiting for remote counters; more are refused at once",
    { from: 1, to: 1_000_000, fallback: 10_000 },
  );
  readonly maxChecksPerSecond: SettingEntry<number> = whole(
    "--max-checks-per-second",
    "SLUICE_MAX_CHECKS_PER_SECOND",
    "maximum number of checks per second and process (0 = unlimited); more are refused at once",
    { from: 0, to: 10_000_000, fallback: 100_000 },
  );
  readonly ipv6PrefixBits: SettingEntry<number> = {
    ...whole("--ipv6-prefix", "SLUICE_IPV6_PREFIX", "prefix length by which IPv6 clients are distinguished", {
      from: 1,
      to: 128,
      fallback: 64,
    }),
    value: "<bits>",
  };
  /** Header names by dimension, in lower case: `{ user: "x-user-id" }`. */
  readonly authorizeDimensions: SettingEntry<Readonly<Record<string, string>>> = {
    flag: "--authorize-dimensions",
    env: "SLUICE_AUTHORIZE_DIMENSIONS",
    value: "<dimension=header,…>",
    help: "request headers that GET /v1/authorize reads as dimensions, such as user=x-user-id,tenant=x-tenant",
    fallback: {},
    fallbackText: "none",
    read: readDimensionHeaders,
  };
  readonly envoyHeaders: SettingEntry<boolean> = flag(
    "--envoy-headers",
    "SLUICE_ENVOY_HEADERS",
    "have Envoy add RateLimit-Limit, -Remaining and -Reset to responses",
  );
  readonly idempotencyHeader: SettingEntry<boolean> = flag(
    "--idempotency-header",
    "SLUICE_IDEMPOTENCY_HEADER",
    "use X-Idempotency-Key as a check's id if the body has none; only for trusted callers",
  );
  readonly retryJitter: SettingEntry<boolean> = {
    flag: "--retry-jitter",
    env: "SLUICE_RETRY_JITTER",
    value: "<true|false>",
    help: "lengthen Retry-After at random, up to twice, so that denied clients do not all retry at once",
    fallback: true,
    read: readSwitch,
  };
}

const sections = {
  Policies: new PolicySettings(),
  "Policy store and control plane": new StoreSettings(),
  Listening: new ListenSettings(),
  "TLS and access": new AccessSettings(),
  Checks: new CheckSettings(),
  "Counters in memory": new MemorySettings(),
  "Counters on Redis or Valkey": new RedisSettings(),
  "Strong counters": new StrongSettings(),
  Leases: new LeaseSettings(),
  "Usage events": new UsageEventSettings(),
  Kafka: new KafkaSettings(),
  Recordings: new RecordingSettings(),
  "Logs, metrics and traces": new ObserveSettings(),
};

type SettingsTable = PolicySettings &
  StoreSettings &
  ListenSettings &
  AccessSettings &
  CheckSettings &
  MemorySettings &
  RedisSettings &
  StrongSettings &
  LeaseSettings &
  UsageEventSettings &
  KafkaSettings &
  RecordingSettings &
  ObserveSettings;

/** All settings of the daemon, parsed. */
export type Settings = {
  readonly [Name in keyof SettingsTable]: SettingsTable[Name] extends SettingEntry<infer Value> ? Value : never;
};

/** Every setting by its name. */
export const settingsTable: SettingsTable = Object.assign({}, ...Object.values(sections)) as SettingsTable;

/** The same by the sections of `serve --help`. */
export const settingSections: readonly {
  readonly heading: string;
  readonly names: readonly (keyof Settings)[];
}[] = Object.entries(sections).map(([heading, entries]) => ({
  heading,
  names: Object.keys(entries) as (keyof Settings)[],
}));
