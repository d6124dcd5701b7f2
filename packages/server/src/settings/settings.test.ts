import { describe, expect, it } from "vitest";
import { parseSettings, renderSettingProblems } from "./parse-settings.ts";
import type { Settings } from "./settings.ts";

function readSettings(env: Record<string, string>, flags: Record<string, string> = {}): Settings {
  const reading = parseSettings(env, flags);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return reading.settings;
}

function findProblems(env: Record<string, string>, flags: Record<string, string> = {}): string[] {
  const reading = parseSettings(env, flags);
  return reading.kind === "problems" ? renderSettingProblems(reading.problems).split("\n") : [];
}

describe("settings", () => {
  it("has a default for everything, on loopback", () => {
    expect(readSettings({})).toEqual({
      config: undefined,
      host: "127.0.0.1",
      httpPort: 8080,
      grpcPort: 8081,
      respPort: undefined,
      adminPort: 8090,
      store: undefined,
      storePasswordFile: undefined,
      seed: undefined,
      precedence: "files",
      push: "auto",
      storeGraceMs: 3_600_000,
      auditRetentionMs: 90 * 86_400_000,
      usageBy: ["tenant"],
      usageEvents: [],
      usageEventsQueue: 100_000,
      usageEventsSource: "/sluice",
      usageEventsSpill: undefined,
      usageEventsSpillBytes: 268_435_456,
      usageEventsSubject: "tenant",
      usageEventsToken: undefined,
      usageEventsTokenFile: undefined,
      usageRetentionMs: 30 * 86_400_000,
      usageTotalsRetentionMs: 365 * 86_400_000,
      denialRetentionMs: 3 * 86_400_000,
      adminTokenFile: undefined,
      adminTokenFrom: undefined,
      console: true,
      consoleHosts: [],
      nodeName: undefined,
      httpSocket: undefined,
      grpcSocket: undefined,
      respSocket: undefined,
      tlsCert: undefined,
      tlsKey: undefined,
      tlsClientCa: undefined,
      tlsClientNames: [],
      tokens: undefined,
      allowInsecure: false,
      logLevel: "info",
      logFormat: "text",
      maxCounters: 4_000_000,
      maxCounterBytes: undefined,
      notify: false,
      grpcEngine: "sluice",
      grpcMaxConnectionAgeMs: 0,
      maxConnections: 10_000,
      maxConnectionsPerAddress: undefined,
      maxPending: 10_000,
      maxChecksPerSecond: 100_000,
      workers: 1,
      policySnapshot: undefined,
      authorizeDimensions: {},
      envoyHeaders: false,
      logSample: 1,
      logHashSubjects: false,
      otlpEndpoint: undefined,
      otlpHeaders: {},
      otlpServiceName: "sluice",
      drainMs: 0,
      ipv6PrefixBits: 64,
      idempotencyHeader: false,
      retryJitter: true,
      record: undefined,
      recordBytes: 1024 ** 3,
      recordForMs: 3_600_000,
      recordHash: [],
      recordShare: 1,
      recordShareBy: undefined,
      recordings: undefined,
      recordingsBytes: 4 * 1024 ** 3,
      recordingsRetentionMs: 7 * 86_400_000,
      redis: undefined,
      redisNodes: undefined,
      redisTls: undefined,
      redisUsername: undefined,
      redisPassword: undefined,
      redisPasswordFile: undefined,
      redisSentinelUsername: undefined,
      redisSentinelPassword: undefined,
      redisSentinelPasswordFile: undefined,
      redisMaxConnections: undefined,
      redisCa: undefined,
      redisCert: undefined,
      redisKey: undefined,
      redisServerName: undefined,
      redisPrefix: "s",
      redisLanes: 32,
      redisCells: undefined,
      deadlineMs: undefined,
      leases: "on",
      leaseMs: 20_000,
      leaseStaleMs: 60_000,
      leaseHotPerSecond: 0.35,
      strongCounters: undefined,
      strongDeadlineMs: 250,
      kafka: undefined,
      kafkaPolicyTopic: "sluice.policies",
      kafkaClientId: "sluice",
      kafkaTls: false,
      kafkaCa: undefined,
      kafkaCert: undefined,
      kafkaKey: undefined,
      kafkaSasl: "off",
      kafkaUser: undefined,
      kafkaPassword: undefined,
      kafkaPasswordFile: undefined,
      hotKeyMetrics: 0,
    });
  });

  it("reads the environment, and a flag wins over it", () => {
    const env = { SLUICE_HTTP_PORT: "9000", RATE_LIMIT_CONFIG: "a.yaml", SLUICE_LOG_LEVEL: "DEBUG" };
    expect(readSettings(env)).toMatchObject({ httpPort: 9000, config: "a.yaml", logLevel: "debug" });
    expect(readSettings(env, { httpPort: "0", config: "b.yaml" })).toMatchObject({ httpPort: 0, config: "b.yaml" });
  });

  it("takes an empty variable for an absent one", () => {
    expect(readSettings({ SLUICE_HTTP_PORT: "", SLUICE_HOST: "" })).toMatchObject({
      httpPort: 8080,
      host: "127.0.0.1",
    });
  });

  it("reports every bad value at once, each under the name it was given by", () => {
    const problems = findProblems(
      {
        SLUICE_HTTP_PORT: "80a",
        SLUICE_LOG_LEVEL: "loud",
        SLUICE_MAX_COUNTERS: "-1",
        SLUICE_IDEMPOTENCY_HEADER: "perhaps",
      },
      { maxConnections: "0", config: " " },
    );
    expect(problems).toHaveLength(6);
    expect(problems.join("\n")).toContain('SLUICE_HTTP_PORT: is "80a"; it should be a whole number from 0 to 65535');
    expect(problems.join("\n")).toContain('SLUICE_LOG_LEVEL: is "loud"; it should be one of fatal, error');
    expect(problems.join("\n")).toContain("SLUICE_MAX_COUNTERS: ");
    expect(problems.join("\n")).toContain('SLUICE_IDEMPOTENCY_HEADER: is "perhaps"; it should be true or false');
    expect(problems.join("\n")).toContain("--max-connections: ");
    expect(problems.join("\n")).toContain("--config: is empty");
  });

  it("reads a duration", () => {
    expect(readSettings({ SLUICE_DRAIN: "15s" }).drainMs).toBe(15_000);
    expect(readSettings({}, { drainMs: "0s" }).drainMs).toBe(0);
    expect(readSettings({}, { drainMs: "0" }).drainMs).toBe(0);
    for (const text of ["15", "-1s", "1h", "soon"])
      expect(findProblems({}, { drainMs: text }), text).toEqual([
        `--drain: is "${text}"; it should be a duration from 0s to 10m, such as 15s`,
      ]);
  });

  it("reads deadlines down to a millisecond", () => {
    expect(readSettings({ SLUICE_DEADLINE: "3ms" }).deadlineMs).toBe(3);
    expect(readSettings({}, { deadlineMs: "1m" }).deadlineMs).toBe(60_000);
    for (const text of ["0ms", "61s", "25"])
      expect(findProblems({ SLUICE_DEADLINE: text }), text).toEqual([
        `SLUICE_DEADLINE: is "${text}"; it should be a duration from 1ms to 1m, such as 25ms`,
      ]);
  });

  it("reads how leases are held", () => {
    expect(readSettings({ SLUICE_LEASES: "OFF" }).leases).toBe("off");
    expect(
      readSettings({ SLUICE_LEASE_TIME: "2s", SLUICE_LEASE_STALE: "0" }, { leaseHotPerSecond: "1_000" }),
    ).toMatchObject({ leases: "on", leaseMs: 2_000, leaseStaleMs: 0, leaseHotPerSecond: 1_000 });
    const env = { SLUICE_LEASES: "yes", SLUICE_LEASE_TIME: "499ms", SLUICE_LEASE_STALE: "61m", SLUICE_LEASE_HOT: "0" };
    expect(findProblems(env)).toEqual([
      'SLUICE_LEASES: is "yes"; it should be one of on, off',
      'SLUICE_LEASE_TIME: is "499ms"; it should be a duration from 500ms to 1m, such as 20s',
      'SLUICE_LEASE_STALE: is "61m"; it should be a duration from 0s to 1h, such as 60s',
      'SLUICE_LEASE_HOT: is "0"; it should be a number from 0.01 to 1000000',
    ]);
  });

  it("warns about settings of leases if there are none", () => {
    const warned = (env: Record<string, string>, flags: Record<string, string> = {}): string[] => {
      const reading = parseSettings(env, flags);
      return reading.kind === "problems" ? [] : renderSettingProblems(reading.warnings).split("\n");
    };
    expect(warned({ SLUICE_LEASES: "off", SLUICE_LEASE_TIME: "2s" }, { leaseStaleMs: "1s" })).toEqual([
      "SLUICE_LEASE_TIME: is of no use, because leases are off (SLUICE_LEASES, --leases)",
      "--lease-stale: is of no use, because leases are off (SLUICE_LEASES, --leases)",
    ]);
    expect(warned({ SLUICE_LEASES: "off" })).toEqual([""]);
    expect(warned({ SLUICE_LEASE_TIME: "2s" })).toEqual([""]);
  });

  it("reads where counters are", () => {
    expect(readSettings({ SLUICE_REDIS_URL: "rediss://u:p@a:1/2" }).redis).toMatchObject({
      password: "p",
      database: 2,
    });
    expect(readSettings({ SLUICE_REDIS_URL: "redis://a" }, { redis: "unix:///run/b" }).redis).toMatchObject({
      addresses: [{ kind: "unix", path: "/run/b" }],
    });
    expect(readSettings({ REDIS_CLUSTER_URL: "a:1,b:2", REDIS_USE_TLS: "1", REDIS_MAX_CONN: "50" })).toMatchObject({
      redisNodes: { servers: { kind: "cluster" } },
      redisTls: true,
      redisMaxConnections: 50,
    });
  });

  it("never repeats an address that may hold a password", () => {
    const env = { SLUICE_REDIS_URL: "redis://u:hunter2@", REDIS_CLUSTER_URL: "redis://u:hunter2@a:x,redis://b" };
    const problems = findProblems(env, { redisPrefix: "{a}" });
    expect(problems).toHaveLength(3);
    expect(problems[0]).toMatch(/^SLUICE_REDIS_URL: is not an address that is understood/);
    expect(problems[1]).toMatch(/^REDIS_CLUSTER_URL: has a host that/);
    expect(problems[2]).toMatch(/^--redis-prefix: /);
    expect(problems.join()).not.toContain("hunter2");
  });

  it("warns of a password on the command line, and of servers that are named twice", () => {
    const warnings = (env: Record<string, string>, flags: Record<string, string> = {}): readonly string[] => {
      const reading = parseSettings(env, flags);
      return reading.kind === "settings" ? renderSettingProblems(reading.warnings).split("\n") : [];
    };
    expect(warnings({ SLUICE_REDIS_URL: "redis://u:p@a" })).toEqual([""]);
    expect(warnings({}, { redis: "redis://u@a" })).toEqual([""]);
    const [password, ...rest] = warnings({}, { redis: "redis://u:hunter2@a" });
    expect(password).toMatch(/^--redis: holds a password.*SLUICE_REDIS_URL/);
    expect(password).not.toContain("hunter2");
    expect(rest).toEqual([]);
    expect(warnings({ SLUICE_REDIS_URL: "redis://a", REDIS_CLUSTER_URL: "b" })).toEqual([
      expect.stringMatching(/^REDIS_CLUSTER_URL: is not used/),
    ]);
  });

  it("knows two kinds of policy stores, and repeats no password", () => {
    expect(readSettings({ SLUICE_STORE_URL: "sqlite:/tmp/x" }).store).toBe("sqlite:/tmp/x");
    expect(readSettings({ SLUICE_STORE_URL: "postgresql://a/b" }).store).toBe("postgresql://a/b");
    const problems = findProblems({ SLUICE_STORE_URL: "mysql://u:hunter2@a/b" });
    expect(problems).toEqual([expect.stringMatching(/^SLUICE_STORE_URL: should be postgres:.* or sqlite:PATH$/)]);
    expect(findProblems({ SLUICE_ADMIN_PORT: "8080" }), "nothing listens there").toEqual([]);
    expect(findProblems({ SLUICE_ADMIN_PORT: "8080", SLUICE_STORE_URL: "sqlite:x" })).toHaveLength(1);
    const warnings = (flags: Record<string, string>): readonly string[] => {
      const reading = parseSettings({}, flags);
      return reading.kind === "settings" ? reading.warnings.map(({ path, message }) => `${path}: ${message}`) : [];
    };
    const password = warnings({ store: "postgres://u:hunter2@a/b" });
    expect(password).toEqual([
      expect.stringMatching(/^--store: holds a password.*SLUICE_STORE_URL.*SLUICE_STORE_PASSWORD_FILE/),
    ]);
    expect(password.join()).not.toContain("hunter2");
    expect(warnings({ store: "postgres://u@a/b" })).toEqual([]);
    expect(warnings({ seed: "x" })).toEqual([expect.stringMatching(/^--seed: is of no use/)]);
  });

  it("warns about flags without effect, but not about such variables", () => {
    const warned = (flags: Record<string, string>, env: Record<string, string> = {}): readonly string[] => {
      const reading = parseSettings(env, flags);
      return reading.kind === "settings" ? reading.warnings.map(({ path, message }) => `${path}: ${message}`) : [];
    };
    for (const flags of [{ adminPort: "5" }, { precedence: "store" }, { push: "none" }, { storeGraceMs: "2h" }])
      expect(warned(flags)).toEqual([expect.stringContaining("is of no use, because there is no policy store")]);
    expect(warned({ adminPort: "off" })).toEqual([]);
    expect(warned({ push: "none", store: "sqlite:x" })).toEqual([]);
    for (const flags of [{ redisCa: "x" }, { deadlineMs: "5ms" }, { leaseMs: "2s" }])
      expect(warned(flags)).toEqual([expect.stringContaining("is of no use, because counters are in memory")]);
    expect(warned({ redisCa: "x", redis: "rediss://a" })).toEqual([]);
    expect(warned({ redisCa: "x", config: "names-servers-too.yaml" })).toEqual([]);
    expect(warned({}, { SLUICE_PUSH: "none", SLUICE_LEASE_TIME: "2s" })).toEqual([]);
    expect(warned({ maxConnections: "5", maxConnectionsPerAddress: "6" })).toEqual([
      expect.stringMatching(/^--max-connections-per-address: is of no use, because it is more than .* is 5$/),
    ]);
  });

  it("warns of variables that are named after an option and not read", () => {
    const warned = (env: Record<string, string>): readonly string[] => {
      const reading = parseSettings(env);
      return reading.kind === "settings" ? reading.warnings.map(({ path, message }) => `${path}: ${message}`) : [];
    };
    expect(warned({ SLUICE_CONFIG: "p.yaml", SLUICE_PORT: "9090" })).toEqual([
      "SLUICE_CONFIG: is not read; the variable of --config is RATE_LIMIT_CONFIG",
      "SLUICE_PORT: is not read; the variable of --port is SLUICE_HTTP_PORT",
    ]);
    expect(warned({ SLUICE_PORT: "tcp://10.0.0.1:8080", SLUICE_STORE: "", SLUICE_TOKEN: "x" })).toEqual([]);
  });

  it("warns of misspelt variables, and of no others", () => {
    const reading = parseSettings({
      ...{ SLUICE_REDIS_ULR: "redis://a", SLUICE_HTP_PORT: "8080", SLUICE_BANANA: "1" },
      // Read by commands, or set by Kubernetes for services called sluice and sluice-admin.
      ...{ SLUICE_SERVER: "http://a", SLUICE_SERVICE_HOST: "10.0.0.1", SLUICE_SERVICE_PORT_HTTP: "8080" },
      ...{
        SLUICE_PORT_8080_TCP_ADDR: "10.0.0.1",
        SLUICE_ADMIN_SERVICE_PORT: "8090",
        SLUICE_X_PORT: "tcp://10.0.0.1:1",
      },
      ...{ SLUICE_EMPTY: "", OTHER_PORT: "1" },
    });
    expect(reading.kind === "settings" && reading.warnings.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      "SLUICE_REDIS_ULR: is not read, because no setting has this name; did you mean SLUICE_REDIS_URL?",
      "SLUICE_HTP_PORT: is not read, because no setting has this name; did you mean SLUICE_HTTP_PORT?",
      "SLUICE_BANANA: is not read, because no setting has this name; sluice serve --help lists the variables",
    ]);
  });

  it.each(["0.0.0.0", "::", "10.0.0.5", "example.org", "127.evil.example"])(
    "refuses to listen on %s and says what to do",
    (host) => {
      const problems = findProblems({ SLUICE_HOST: host });
      expect(problems).toHaveLength(1);
      expect(problems[0]).toMatch(/^SLUICE_HOST: .*127\.0\.0\.1.*--allow-insecure/);
    },
  );

  it("listens anywhere with TLS or tokens, and warns of tokens that others can read on the way", () => {
    const tls = { SLUICE_TLS_CERT: "c", SLUICE_TLS_KEY: "k" };
    expect(readSettings({ SLUICE_HOST: "0.0.0.0", ...tls }).host).toBe("0.0.0.0");
    const findWarnings = (env: Record<string, string>): readonly string[] => {
      const reading = parseSettings({ SLUICE_HOST: "::", SLUICE_TOKENS: "t", ...env });
      return reading.kind === "settings" ? reading.warnings.map(({ message }) => message) : ["problems"];
    };
    expect(findWarnings({})).toEqual([expect.stringContaining("travel in the clear")]);
    expect(findWarnings(tls)).toEqual([]);
    expect(findWarnings({ SLUICE_HOST: "127.0.0.1" })).toEqual([]);
  });

  it.each([
    [{ SLUICE_TLS_CERT: "c" }, "SLUICE_TLS_CERT: is of no use without its key"],
    [{ SLUICE_TLS_KEY: "k" }, "SLUICE_TLS_KEY: is of no use without its certificate"],
    [{ SLUICE_TLS_CLIENT_CA: "a" }, "SLUICE_TLS_CLIENT_CA: asks clients for certificates, which needs TLS"],
    [
      { SLUICE_TLS_CERT: "c", SLUICE_TLS_KEY: "k", SLUICE_TLS_CLIENT_NAMES: "a" },
      "SLUICE_TLS_CLIENT_NAMES: names clients, but there is no CA to verify their certificates with",
    ],
  ])("refuses half of what TLS needs: %j", (env, problem) => {
    expect(findProblems(env)).toEqual([expect.stringContaining(problem)]);
  });

  it("is not protected by a certificate without its key", () => {
    expect(findProblems({ SLUICE_HOST: "0.0.0.0", SLUICE_TLS_CERT: "c" }).length).toBeGreaterThan(0);
  });

  it("reads ports, which can be off", () => {
    expect(readSettings({ SLUICE_HTTP_PORT: "off", SLUICE_GRPC_PORT: "OFF", SLUICE_RESP_PORT: "6380" })).toMatchObject({
      httpPort: undefined,
      grpcPort: undefined,
      respPort: 6380,
    });
    expect(findProblems({ SLUICE_RESP_PORT: "on" })).toEqual([expect.stringMatching(/^SLUICE_RESP_PORT: is "on"/)]);
  });

  it("reads how many workers are wanted", () => {
    expect(readSettings({ SLUICE_WORKERS: "auto" }).workers).toBe(0);
    expect(readSettings({}, { workers: "4" }).workers).toBe(4);
    for (const text of ["0", "-1", "513", "many"])
      expect(findProblems({ SLUICE_WORKERS: text }), text).toEqual([
        `SLUICE_WORKERS: is "${text}"; it should be auto, or a whole number from 1 to 512`,
      ]);
  });

  it("reads names, shares, URLs and headers of dimensions", () => {
    expect(
      readSettings({
        SLUICE_TLS_CLIENT_NAMES: "a.b, spiffe://c/d",
        SLUICE_TLS_CLIENT_CA: "a",
        SLUICE_TLS_CERT: "c",
        SLUICE_TLS_KEY: "k",
      }).tlsClientNames,
    ).toEqual(["a.b", "spiffe://c/d"]);
    expect(readSettings({ SLUICE_LOG_SAMPLE: "0.25" }).logSample).toBe(0.25);
    expect(readSettings({}, { authorizeDimensions: "user=X-User-Id, tenant=x-tenant" }).authorizeDimensions).toEqual({
      user: "x-user-id",
      tenant: "x-tenant",
    });
    expect(readSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" }).otlpEndpoint).toBe(
      "http://127.0.0.1:4318",
    );
    const wrong = {
      SLUICE_TLS_CLIENT_NAMES: "a,,b",
      SLUICE_LOG_SAMPLE: "2",
      SLUICE_AUTHORIZE_DIMENSIONS: "user",
      OTEL_EXPORTER_OTLP_ENDPOINT: "ftp://x",
      SLUICE_MAX_PENDING: "0",
      SLUICE_MAX_CHECKS_PER_SECOND: "-1",
    };
    for (const [env, text] of Object.entries(wrong))
      expect(findProblems({ [env]: text }), env).toEqual([expect.stringContaining(`${env}: `)]);
  });

  it("say who sends traces, and how the collector knows", () => {
    expect(readSettings({})).toMatchObject({ otlpServiceName: "sluice", otlpHeaders: {} });
    const env = { OTEL_SERVICE_NAME: "edge", OTEL_EXPORTER_OTLP_HEADERS: "Api-Key=a%3Db%2C, x-tenant = t=1" };
    expect(readSettings(env)).toMatchObject({
      otlpServiceName: "edge",
      otlpHeaders: { "api-key": "a=b,", "x-tenant": "t=1" },
    });
    for (const text of [
      "hunter2",
      "a=hunter2,b",
      "a b=hunter2",
      "a=%zzhunter2",
      "a=hunter2%0D%0Ax",
      "a=hunter2%C3%BC",
    ]) {
      const [problem, ...more] = findProblems({ OTEL_EXPORTER_OTLP_HEADERS: text });
      expect(problem, text).toMatch(/^OTEL_EXPORTER_OTLP_HEADERS: /);
      expect(problem, text).not.toContain("hunter2");
      expect(more).toEqual([]);
    }
  });

  it("keep the snapshot of policies out of the policies themselves", () => {
    const at = (config: string, policySnapshot: string): readonly string[] =>
      findProblems({}, { config, policySnapshot });
    expect(at("/etc/p.yaml", "/etc/../etc/p.yaml")).toEqual([
      expect.stringMatching(/^--policy-snapshot: .* would be overwritten/),
    ]);
    expect(at("/etc/policies/", "/etc/policies/last.json")).toEqual([
      expect.stringMatching(/^--policy-snapshot: .* would be read as one of them/),
    ]);
    expect(at("/etc/policies", "/etc/policies/.last.json")).toEqual([]);
    expect(at("/etc/policies", "/etc/policies/kept/last.json")).toEqual([]);
    expect(at("/etc/policies.yaml", "/etc/last.json")).toEqual([]);
    const reading = parseSettings({}, { policySnapshot: "/var/last.json" });
    expect(reading).toMatchObject({
      warnings: [{ path: ["--policy-snapshot"], message: expect.stringContaining("--config") }],
    });
  });

  it("listens anywhere when explicitly allowed", () => {
    expect(readSettings({ SLUICE_HOST: "0.0.0.0", SLUICE_ALLOW_INSECURE: "true" }).host).toBe("0.0.0.0");
    expect(readSettings({}, { host: "::", allowInsecure: "true" }).host).toBe("::");
  });

  it("are refused if there is nothing to listen on", () => {
    expect(findProblems({ SLUICE_GRPC_PORT: "off" }, { httpPort: "off" })).toEqual([
      expect.stringMatching(/^--port: is off, .* nothing to listen on/),
    ]);
    expect(findProblems({ SLUICE_GRPC_PORT: "off", SLUICE_HTTP_PORT: "off", SLUICE_RESP_SOCKET: "/s" })).toEqual([]);
  });

  it("are refused if two protocols share a port or a socket", () => {
    expect(findProblems({ SLUICE_HTTP_PORT: "7000" }, { grpcPort: "7000" })).toEqual([
      "--grpc-port: is 7000, as SLUICE_HTTP_PORT (--port); each protocol needs its own",
    ]);
    expect(findProblems({ SLUICE_RESP_PORT: "8081" })).toEqual([
      expect.stringMatching(/^SLUICE_RESP_PORT: is 8081, as/),
    ]);
    expect(findProblems({ SLUICE_HTTP_SOCKET: "/s", SLUICE_RESP_SOCKET: "/s" })).toEqual([
      "SLUICE_RESP_SOCKET: is /s, as SLUICE_HTTP_SOCKET (--http-socket); each protocol needs its own",
    ]);
    expect(findProblems({ SLUICE_HTTP_PORT: "0", SLUICE_GRPC_PORT: "0", SLUICE_RESP_PORT: "0" })).toEqual([]);
  });
});
