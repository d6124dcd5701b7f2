import type { FailMode } from "sluice/internal";
import { countersFromClient } from "./counters-from-client.ts";
import { RateLimiterAbstract } from "./flexible/rate-limiter-abstract.ts";
import { type RateLimiterOptions, refuse } from "./flexible/rate-limiter-options.ts";
import type { RateLimiterRes } from "./flexible/rate-limiter-res.ts";
import { wrongOption } from "./limits-by-shape.ts";

export { BurstyRateLimiter } from "./flexible/bursty-rate-limiter.ts";
export { RateLimiterAbstract } from "./flexible/rate-limiter-abstract.ts";
export type { InsuranceLimiter, RateLimiterOptions } from "./flexible/rate-limiter-options.ts";
export { RateLimiterRes } from "./flexible/rate-limiter-res.ts";
export { RateLimiterUnion } from "./flexible/rate-limiter-union.ts";

/** rate-limiter-flexible's limiter in memory: bounded, and without a timer for every key. See `RateLimiterAbstract`. */
export class RateLimiterMemory extends RateLimiterAbstract {
  constructor(options: RateLimiterOptions) {
    super(options);
  }
}

export interface RateLimiterRedisOptions extends RateLimiterOptions {
  /**
   * The app's own client of ioredis, iovalkey or node-redis. Counters use separate connections with the client's settings,
   * closed when it ends: no command waits in the client's queue, or is sent twice.
   */
  readonly storeClient?: object | undefined;
  /** Not needed: the kind of client is detected. */
  readonly useRedisPackage?: boolean | undefined;
  /** Rejects with an Error while the server is unavailable, like `onFailure: "closed"`. Nothing waits longer than a second. */
  readonly rejectIfRedisNotReady?: boolean | undefined;
  readonly rejectIfValkeyNotReady?: boolean | undefined;
}

/** rate-limiter-flexible's limiter in Redis or Valkey, shared by all processes. See `RateLimiterAbstract`. */
export class RateLimiterRedis extends RateLimiterAbstract {
  constructor(options: RateLimiterRedisOptions) {
    refuse(options, "customIncrTtlLuaScript", "is not supported: there is no script to replace");
    refuse(options, "useRedis3AndLowerPackage", "is not supported; node-redis 5 or later is");
    const { storeClient } = options;
    if (options.counters === undefined && (typeof storeClient !== "object" || storeClient === null)) {
      throw wrongOption("storeClient", "must be a client of ioredis, iovalkey or node-redis");
    }
    super({ ...options, onFailure: failMode(options), counters: options.counters ?? countersFromClient(storeClient!) });
  }
}

function failMode(options: RateLimiterRedisOptions): FailMode | undefined {
  const { onFailure, rejectIfRedisNotReady, rejectIfValkeyNotReady } = options;
  const name = rejectIfRedisNotReady ? "rejectIfRedisNotReady" : "rejectIfValkeyNotReady";
  if (!rejectIfRedisNotReady && !rejectIfValkeyNotReady) return onFailure;
  if (onFailure === undefined || onFailure === "closed") return "closed";
  throw wrongOption(
    name,
    `rejects while the server is unavailable, and onFailure ${onFailure} does not: remove one of them`,
  );
}

/** The same, under its other name. */
export class RateLimiterValkey extends RateLimiterRedis {}

/** The original's type names, for existing code. */
export type IRateLimiterOptions = RateLimiterOptions;
export type IRateLimiterStoreOptions = RateLimiterRedisOptions;
export type IRateLimiterRedisOptions = RateLimiterRedisOptions;
export type IRateLimiterValkeyOptions = RateLimiterRedisOptions;
export type IRateLimiterRes = Partial<
  Pick<RateLimiterRes, "remainingPoints" | "msBeforeNext" | "consumedPoints" | "isFirstInDuration">
>;
