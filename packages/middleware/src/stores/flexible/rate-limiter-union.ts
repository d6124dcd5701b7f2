import { wrongOption } from "../limits-by-shape.ts";
import { RateLimiterAbstract } from "./rate-limiter-abstract.ts";
import type { Key } from "./rate-limiter-options.ts";
import type { RateLimiterRes } from "./rate-limiter-res.ts";

/** Several limiters that must all have room; each of them counts every request. Answers are keyed by `keyPrefix`. */
export class RateLimiterUnion {
  readonly #limiters: readonly RateLimiterAbstract[];

  constructor(...limiters: readonly RateLimiterAbstract[]) {
    if (limiters.length === 0 || !limiters.every((one) => one instanceof RateLimiterAbstract)) {
      throw wrongOption("limiters", "must be one or more limiters of this module");
    }
    if (new Set(limiters.map(({ keyPrefix }) => keyPrefix)).size < limiters.length) {
      throw wrongOption("limiters", "must each have a different keyPrefix, because answers are keyed by it");
    }
    this.#limiters = limiters;
  }

  async consume(key: Key, points = 1): Promise<Record<string, RateLimiterRes>> {
    const asked = await Promise.allSettled(this.#limiters.map((one) => one.consume(key, points)));
    const passed = asked.filter((one) => one.status === "fulfilled").map(({ value }) => value);
    if (passed.length === asked.length) return this.#byPrefix(passed);
    throw this.#byPrefix(asked.map((one) => (one.status === "rejected" ? one.reason : undefined)));
  }

  #byPrefix<Answer>(answers: readonly Answer[]): Record<string, Answer> {
    const entries: [string, Answer][] = this.#limiters.map(({ keyPrefix }, i) => [keyPrefix, answers[i]!]);
    return Object.fromEntries(entries.filter(([, answer]) => answer !== undefined));
  }
}
