import { warnOncePerMinute } from "../../warn-once-per-minute.ts";
import { type StoreOptions, wrongOption } from "../limits-by-shape.ts";
import type { RateLimiterRes } from "./rate-limiter-res.ts";

/** The options of every limiter: those of rate-limiter-flexible, and where counters live. */
export interface RateLimiterOptions extends Omit<StoreOptions, "prefix"> {
  readonly points: number;
  /** Seconds; fractions are allowed. 0: consumed points never come back. */
  readonly duration: number;
  /** Once more than `points` are consumed, the key is denied for this many seconds and then starts fresh. At most 30 days. */
  readonly blockDuration?: number | undefined;
  /** `blockDuration` begins when this many points are consumed. At least `points`. Default: more than `points`. */
  readonly blockOnConsumed?: number | undefined;
  /** Keeps these counters separate from all others. Default: `rlflx`, as in the original; give each limiter on a server its own. */
  readonly keyPrefix?: string | undefined;
  /** Answers while counters are unavailable; a limiter of this module or of rate-limiter-flexible itself. */
  readonly insuranceLimiter?: InsuranceLimiter | undefined;
  /** Once this many points are consumed, deny the key in this process without asking. At least `points`. */
  readonly inMemoryBlockOnConsumed?: number | undefined;
  /** How many seconds that lasts. Default: until the points are back. */
  readonly inMemoryBlockDuration?: number | undefined;
  /** Not supported. The algorithm `leaky_bucket` returns how long to wait. */
  readonly execEvenly?: false | undefined;
}

export type Key = string | number;

/** Options of one operation. There are none: `customDuration` is refused. */
export type OperationOptions = Readonly<Record<string, unknown>>;

export interface InsuranceLimiter {
  blockDuration: number;
  consume(key: Key, points?: number, options?: OperationOptions): Promise<RateLimiterLikeRes>;
  penalty(key: Key, points?: number, options?: OperationOptions): Promise<RateLimiterLikeRes>;
  reward(key: Key, points?: number, options?: OperationOptions): Promise<RateLimiterLikeRes>;
  get(key: Key, options?: OperationOptions): Promise<RateLimiterLikeRes | null>;
  set(key: Key, points: number, secDuration: number, options?: OperationOptions): Promise<RateLimiterLikeRes>;
  block(key: Key, secDuration: number, options?: OperationOptions): Promise<RateLimiterLikeRes>;
  delete(key: Key, options?: OperationOptions): Promise<boolean>;
}

export type RateLimiterLikeRes = Pick<
  RateLimiterRes,
  "remainingPoints" | "msBeforeNext" | "consumedPoints" | "isFirstInDuration" | "toJSON"
>;

export const defaultPrefix = "rlflx";

export function storeOptions(options: RateLimiterOptions): StoreOptions {
  const { counters, algorithm, onFailure, onDegraded, insuranceLimiter, keyPrefix = defaultPrefix } = options;
  if (typeof keyPrefix !== "string") throw wrongOption("keyPrefix", "must be a string");
  const insured: StoreOptions = {
    onFailure: "closed",
    onDegraded:
      onDegraded ??
      ((reason) =>
        warnOncePerMinute("SLUICE_DEGRADED", `counters are unavailable (${reason}); the insurance limiter answers`)),
  };
  return {
    counters,
    algorithm,
    onFailure,
    onDegraded,
    prefix: keyPrefix,
    ...(insuranceLimiter === undefined ? undefined : insured),
  };
}

/** Unsupported options are refused, never ignored. */
export function refuse(options: object, name: string, message: string): void {
  if (Reflect.get(options, name)) throw wrongOption(name, message);
}

export function refuseCustomDuration(options: OperationOptions): void {
  refuse(options, "customDuration", "is not supported; make a limiter for each duration");
}
