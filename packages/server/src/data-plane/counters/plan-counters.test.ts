import type { RateLimitsRuntime } from "sluice/policy-text";
import { describe, expect, it } from "vitest";
import { parseSettings, SettingError } from "../../settings/parse-settings.ts";
import { type CountersPlan, planCounters } from "./plan-counters.ts";

function plan(env: Record<string, string>, runtime?: RateLimitsRuntime): CountersPlan {
  const reading = parseSettings(env);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return planCounters(reading.settings, runtime);
}

const at = (host: string, port = 6379): object => ({ addresses: [{ kind: "tcp", host, port }] });

describe("where counters are", () => {
  it("is this process's memory by default", () => {
    expect(plan({})).toEqual({ kind: "memory", idle: [] });
    expect(plan({ REDIS_CLUSTER_PASSWORD: "p", SLUICE_DEADLINE: "3ms" })).toEqual({ kind: "memory", idle: [] });
  });

  it("is what settings say, before what policy files say", () => {
    const runtime = { redis: { host: "c", db: 4 } };
    expect(plan({ SLUICE_REDIS_URL: "redis://a", REDIS_CLUSTER_URL: "b" }, runtime)).toMatchObject({
      servers: at("a"),
    });
    expect(plan({ REDIS_CLUSTER_URL: "b" }, runtime)).toMatchObject({
      servers: at("b"),
      ofUnknownKind: true,
      idle: ["redis.host", "redis.db"],
    });
    expect(plan({}, runtime)).toMatchObject({ servers: { ...at("c"), kind: "standalone", database: 4 }, idle: [] });
  });

  it("comes with our credentials there, unless the address has them", () => {
    const access = { REDIS_CLUSTER_USERNAME: "u", REDIS_CLUSTER_PASSWORD: "p", REDIS_USE_TLS: "true" };
    expect(plan({ SLUICE_REDIS_URL: "redis://a", ...access })).toMatchObject({
      servers: { username: "u", password: "p", tls: {} },
    });
    expect(plan(access, { redis: { host: "a" } })).toMatchObject({
      servers: { username: "u", password: "p", tls: {} },
    });
    expect(plan({ SLUICE_REDIS_URL: "rediss://x@a", ...access })).toMatchObject({
      servers: { username: "x", password: "p", tls: {} },
    });
    const { servers } = plan({ SLUICE_REDIS_URL: "redis://:q@a", ...access }) as Extract<
      CountersPlan,
      { kind: "redis" }
    >;
    expect(servers.password).toBe("q");
    expect(servers.username).toBeUndefined();
    expect(() => plan({ SLUICE_REDIS_URL: "rediss://a", REDIS_USE_TLS: "false" })).toThrow(SettingError);
  });

  it("has separate passwords for Sentinels", () => {
    const env = {
      SLUICE_REDIS_SENTINEL_USERNAME: "s",
      SLUICE_REDIS_SENTINEL_PASSWORD: "t",
      REDIS_CLUSTER_PASSWORD: "p",
    };
    expect(plan({ SLUICE_REDIS_URL: "redis+sentinel://a/main", ...env })).toMatchObject({
      servers: { password: "p", sentinelUsername: "s", sentinelPassword: "t" },
    });
  });
});

describe("the runtime block", () => {
  it("reads modes, ports, timeouts and the health check", () => {
    const redis = {
      mode: "cluster",
      host: "[::1]",
      port: 7000,
      socketTimeoutMs: 40,
      socketConnectTimeoutMs: 300,
    } as const;
    expect(plan({}, { redis, healthCheck: { failureThreshold: 3, checkIntervalMs: 500 } })).toMatchObject({
      servers: { kind: "cluster", addresses: [{ host: "::1", port: 7000 }], connectTimeoutMs: 300 },
      deadlineMs: 40,
      breaker: { failuresInARow: 3, probeEveryMs: 500 },
      idle: [],
    });
    expect(plan({}, { redis: { mode: "sentinel", host: "s" } })).toMatchObject({ servers: at("s", 26_379) });
    expect(plan({}, { redis: { port: 7000 } })).toMatchObject({ servers: at("127.0.0.1", 7000) });
  });

  it("waits no longer than a minute, and 25 ms by default", () => {
    expect(plan({}, { redis: { host: "a", socketTimeoutMs: 600_000 } })).toMatchObject({ deadlineMs: 60_000 });
    expect(plan({}, { redis: { host: "a" } })).toMatchObject({ deadlineMs: 25 });
  });

  it("has no effect without servers, or against settings, and each setting is named as it is written", () => {
    const redis = { db: 1, socketTimeoutMs: 5, connectionPoolSize: 50 };
    expect(plan({}, { redis, healthCheck: {} })).toEqual({
      kind: "memory",
      idle: ["redis.db", "redis.socket_timeout_ms", "redis.connection_pool_size", "health_check"],
    });
    expect(plan({ SLUICE_REDIS_URL: "redis://a", SLUICE_DEADLINE: "3ms" }, { redis, healthCheck: {} })).toMatchObject({
      deadlineMs: 3,
      idle: ["redis.db", "redis.socket_timeout_ms"],
    });
  });
});
