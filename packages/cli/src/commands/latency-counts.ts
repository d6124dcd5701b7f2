export interface LatencyReport {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Each bucket is 2 % longer than the one before it; together they reach from 10 µs to more than a minute. */
const growth = Math.log(1.02);
const leastMs = 0.01;
const buckets = 800;

/** Durations in a fixed number of buckets: quantiles are right to 2 %. */
export class LatencyCounts {
  readonly #counts: Float64Array = new Float64Array(buckets);
  #total = 0;
  #maxMs = 0;

  add(ms: number): void {
    const at = Math.ceil(Math.log(Math.max(ms, leastMs) / leastMs) / growth);
    this.#counts[Math.min(at, buckets - 1)]! += 1;
    this.#total += 1;
    if (ms > this.#maxMs) this.#maxMs = ms;
  }

  get report(): LatencyReport {
    return { p50: this.#quantile(0.5), p90: this.#quantile(0.9), p99: this.#quantile(0.99), max: shorten(this.#maxMs) };
  }

  #quantile(share: number): number {
    let left = Math.ceil(share * this.#total);
    if (left === 0) return 0;
    for (let at = 0; at < buckets; at++) {
      left -= this.#counts[at]!;
      if (left <= 0) return shorten(Math.min(this.#maxMs, leastMs * Math.exp(at * growth)));
    }
    return shorten(this.#maxMs);
  }
}

function shorten(ms: number): number {
  return Number(ms.toPrecision(3));
}
