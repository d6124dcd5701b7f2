import type { RateLimiterAbstract } from "./rate-limiter-abstract.ts";
import type { Key, OperationOptions } from "./rate-limiter-options.ts";
import { RateLimiterRes } from "./rate-limiter-res.ts";

/** A limiter with a second one that is used if the first denies. The answer is the first's, with the shorter of the two waits. */
export class BurstyRateLimiter {
  readonly #steady: RateLimiterAbstract;
  readonly #burst: RateLimiterAbstract;

  constructor(rateLimiter: RateLimiterAbstract, burstLimiter: RateLimiterAbstract) {
    this.#steady = rateLimiter;
    this.#burst = burstLimiter;
  }

  get points(): number {
    return this.#steady.points;
  }

  async consume(key: Key, pointsToConsume = 1, options: OperationOptions = {}): Promise<RateLimiterRes> {
    try {
      return await this.#steady.consume(key, pointsToConsume, options);
    } catch (denied) {
      if (!(denied instanceof RateLimiterRes)) throw denied;
      try {
        return combined(denied, await this.#burst.consume(key, pointsToConsume, options));
      } catch (deniedAgain) {
        throw deniedAgain instanceof RateLimiterRes ? combined(denied, deniedAgain) : deniedAgain;
      }
    }
  }

  async get(key: Key): Promise<RateLimiterRes | null> {
    const [steady, burst] = await Promise.all([this.#steady.get(key), this.#burst.get(key)]);
    return steady === null ? null : combined(steady, burst);
  }
}

function combined(steady: RateLimiterRes, burst: RateLimiterRes | null): RateLimiterRes {
  const { remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration } = steady;
  const soonerMs = Math.min(msBeforeNext, burst?.msBeforeNext ?? 0);
  return new RateLimiterRes(remainingPoints, soonerMs, consumedPoints, isFirstInDuration);
}
