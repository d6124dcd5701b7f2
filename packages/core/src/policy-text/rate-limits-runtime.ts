import { objectOf } from "../shape/object-shapes.ts";
import { boolean, choice, integer, number, refine, type Shape, text } from "../shape/shape.ts";

/**
 * The `runtime` block of the rate_limits format: settings of the service rather than policies. Absent fields were not
 * given.
 */
export interface RateLimitsRuntime {
  readonly failOpen?: boolean;
  readonly enableReadCache?: boolean;
  readonly readCacheTtlMs?: number;
  readonly redis?: {
    readonly mode?: "standalone" | "sentinel" | "cluster";
    readonly host?: string;
    readonly port?: number;
    readonly db?: number;
    readonly connectionPoolSize?: number;
    readonly socketTimeoutMs?: number;
    readonly socketConnectTimeoutMs?: number;
  };
  readonly healthCheck?: { readonly failureThreshold?: number; readonly checkIntervalMs?: number };
}

const timeoutMs = integer({ min: 1, max: 600_000 });

const redis = refine(
  objectOf(
    {},
    {
      mode: choice(["standalone", "sentinel", "cluster"]),
      host: text({ max: 255, pattern: /^\S+$/, form: "a host name or address" }),
      port: integer({ min: 1, max: 65_535 }),
      db: integer({ min: 0, max: 65_535 }),
      connection_pool_size: integer({ min: 1, max: 10_000 }),
      socket_timeout_ms: timeoutMs,
      socket_connect_timeout_ms: timeoutMs,
    },
  ),
  ({ connection_pool_size, socket_timeout_ms, socket_connect_timeout_ms, ...same }) => ({
    ...same,
    ...(connection_pool_size === undefined ? undefined : { connectionPoolSize: connection_pool_size }),
    ...(socket_timeout_ms === undefined ? undefined : { socketTimeoutMs: socket_timeout_ms }),
    ...(socket_connect_timeout_ms === undefined ? undefined : { socketConnectTimeoutMs: socket_connect_timeout_ms }),
  }),
);

const healthCheck = refine(
  objectOf(
    {},
    {
      failure_threshold: integer({ min: 1, max: 1_000 }),
      check_interval_seconds: number({ min: 0.001, max: 86_400 }),
    },
  ),
  ({ failure_threshold, check_interval_seconds }) => ({
    ...(failure_threshold === undefined ? undefined : { failureThreshold: failure_threshold }),
    ...(check_interval_seconds === undefined
      ? undefined
      : { checkIntervalMs: Math.round(check_interval_seconds * 1000) }),
  }),
);

export const runtimeShape: Shape<RateLimitsRuntime> = refine(
  objectOf(
    {},
    {
      fail_open: boolean,
      enable_read_cache: boolean,
      read_cache_ttl_ms: integer({ min: 0, max: 3_600_000 }),
      redis,
      health_check: healthCheck,
    },
  ),
  ({ fail_open, enable_read_cache, read_cache_ttl_ms, redis, health_check }): RateLimitsRuntime => ({
    ...(fail_open === undefined ? undefined : { failOpen: fail_open }),
    ...(enable_read_cache === undefined ? undefined : { enableReadCache: enable_read_cache }),
    ...(read_cache_ttl_ms === undefined ? undefined : { readCacheTtlMs: read_cache_ttl_ms }),
    ...(redis === undefined ? undefined : { redis }),
    ...(health_check === undefined ? undefined : { healthCheck: health_check }),
  }),
);
