import { describe, expect, it } from "vitest";
import { isLoopback, parseSettings, renderSettingProblems, type Settings } from "./settings.ts";

function settingsOf(env: Record<string, string>, flags: Record<string, string> = {}): Settings {
  const reading = parseSettings(env, flags);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return reading.settings;
}

function problemsOf(env: Record<string, string>, flags: Record<string, string> = {}): string[] {
  const reading = parseSettings(env, flags);
  return reading.kind === "problems" ? renderSettingProblems(reading.problems).split("\n") : [];
}

describe("settings", () => {
  it("has a default for everything, on loopback", () => {
    expect(settingsOf({})).toEqual({
      config: undefined,
      host: "127.0.0.1",
      httpPort: 8080,
      allowInsecure: false,
      logLevel: "info",
      logFormat: "text",
      maxCounters: 4_000_000,
      maxCounterBytes: 268_435_456,
      maxConnections: 10_000,
      drainMs: 0,
      ipv6PrefixBits: 64,
      idempotencyHeader: false,
      retryJitter: true,
      redis: undefined,
      redisNodes: undefined,
      redisTls: undefined,
      redisUsername: undefined,
      redisPassword: undefined,
      redisSentinelUsername: undefined,
      redisSentinelPassword: undefined,
      redisMaxConnections: undefined,
      redisCa: undefined,
      redisCert: undefined,
      redisKey: undefined,
      redisServerName: undefined,
      redisPrefix: "s",
      redisLanes: 32,
      redisCells: undefined,
      deadlineMs: undefined,
    });
  });

  it("reads the environment, and a flag wins over it", () => {
    const env = { SLUICE_HTTP_PORT: "9000", RATE_LIMIT_CONFIG: "a.yaml", SLUICE_LOG_LEVEL: "DEBUG" };
    expect(settingsOf(env)).toMatchObject({ httpPort: 9000, config: "a.yaml", logLevel: "debug" });
    expect(settingsOf(env, { httpPort: "0", config: "b.yaml" })).toMatchObject({ httpPort: 0, config: "b.yaml" });
  });

  it("takes an empty variable for an absent one", () => {
    expect(settingsOf({ SLUICE_HTTP_PORT: "", SLUICE_HOST: "" })).toMatchObject({ httpPort: 8080, host: "127.0.0.1" });
  });

  it("reports every bad value at once, each under the name it was given by", () => {
    const problems = problemsOf(
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
    expect(settingsOf({ SLUICE_DRAIN: "15s" }).drainMs).toBe(15_000);
    expect(settingsOf({}, { drainMs: "0s" }).drainMs).toBe(0);
    expect(settingsOf({}, { drainMs: "0" }).drainMs).toBe(0);
    for (const text of ["15", "-1s", "1h", "soon"])
      expect(problemsOf({}, { drainMs: text }), text).toEqual([
        `--drain: is "${text}"; it should be a duration from 0s to 10m, such as 15s`,
      ]);
  });

  it("reads deadlines down to a millisecond", () => {
    expect(settingsOf({ SLUICE_DEADLINE: "3ms" }).deadlineMs).toBe(3);
    expect(settingsOf({}, { deadlineMs: "1m" }).deadlineMs).toBe(60_000);
    for (const text of ["0ms", "61s", "25"])
      expect(problemsOf({ SLUICE_DEADLINE: text }), text).toEqual([
        `SLUICE_DEADLINE: is "${text}"; it should be a duration from 1ms to 1m, such as 25ms`,
      ]);
  });

  it("reads where counters are", () => {
    expect(settingsOf({ SLUICE_REDIS_URL: "rediss://u:p@a:1/2" }).redis).toMatchObject({ password: "p", database: 2 });
    expect(settingsOf({ SLUICE_REDIS_URL: "redis://a" }, { redis: "unix:///run/b" }).redis).toMatchObject({
      addresses: [{ kind: "unix", path: "/run/b" }],
    });
    expect(settingsOf({ REDIS_CLUSTER_URL: "a:1,b:2", REDIS_USE_TLS: "1", REDIS_MAX_CONN: "50" })).toMatchObject({
      redisNodes: { servers: { kind: "cluster" } },
      redisTls: true,
      redisMaxConnections: 50,
    });
  });

  it("never repeats an address that may hold a password", () => {
    const env = { SLUICE_REDIS_URL: "redis://u:hunter2@", REDIS_CLUSTER_URL: "redis://u:hunter2@a:x,redis://b" };
    const problems = problemsOf(env, { redisPrefix: "{a}" });
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

  it.each(["0.0.0.0", "::", "10.0.0.5", "example.org", "127.evil.example"])(
    "refuses to listen on %s and says what to do",
    (host) => {
      const problems = problemsOf({ SLUICE_HOST: host });
      expect(problems).toHaveLength(1);
      expect(problems[0]).toMatch(/^SLUICE_HOST: .*127\.0\.0\.1.*--allow-insecure/);
    },
  );

  it("listens anywhere when told in so many words", () => {
    expect(settingsOf({ SLUICE_HOST: "0.0.0.0", SLUICE_ALLOW_INSECURE: "true" }).host).toBe("0.0.0.0");
    expect(settingsOf({}, { host: "::", allowInsecure: "true" }).host).toBe("::");
  });

  it("knows loopback in its spellings", () => {
    for (const host of ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost", "LOCALHOST", "::ffff:127.0.0.1"])
      expect(isLoopback(host), host).toBe(true);
    for (const host of ["", "128.0.0.1", "127.0.0.1.example", "localhost.example"])
      expect(isLoopback(host), host).toBe(false);
  });
});
