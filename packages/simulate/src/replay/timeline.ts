/** A span of time: what was asked in it, and how it was decided. */
export interface TimelineBucket {
  /** Epoch milliseconds. */
  readonly at_ms: number;
  readonly requests: number;
  /** The most requests in any second of it. */
  readonly peak_per_second: number;
  readonly denied_now: number;
  readonly denied: number;
}

export interface Timeline {
  readonly bucket_ms: number;
  readonly buckets: readonly TimelineBucket[];
}

const firstBucketMs = 1000;

/**
 * Sums over time in a fixed number of buckets. They begin as seconds. When they no longer reach to the latest request,
 * each two become one, so that buckets are always whole seconds and never more than `size`.
 */
export class TimelineCount {
  readonly #size: number;
  #bucketMs = firstBucketMs;
  readonly #startMs: number;
  #last = 0;
  readonly #requests: Float64Array;
  readonly #peaks: Float64Array;
  readonly #deniedNow: Float64Array;
  readonly #denied: Float64Array;
  #second = 0;
  #inSecond = 0;

  /** `size` must be even. */
  constructor(startMs: number, size: number) {
    this.#startMs = Math.floor(startMs / firstBucketMs) * firstBucketMs;
    this.#size = size;
    this.#requests = new Float64Array(size);
    this.#peaks = new Float64Array(size);
    this.#deniedNow = new Float64Array(size);
    this.#denied = new Float64Array(size);
  }

  add(timeMs: number, allowedNow: boolean, allowed: boolean): void {
    const sinceMs = Math.max(0, timeMs - this.#startMs);
    while (sinceMs >= this.#bucketMs * this.#size) this.#fold();
    const at = Math.floor(sinceMs / this.#bucketMs);
    this.#last = Math.max(this.#last, at);
    this.#requests[at]! += 1;
    if (!allowedNow) this.#deniedNow[at]! += 1;
    if (!allowed) this.#denied[at]! += 1;
    const second = Math.floor(sinceMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#inSecond = 0;
    }
    this.#inSecond += 1;
    if (this.#inSecond > this.#peaks[at]!) this.#peaks[at] = this.#inSecond;
  }

  get timeline(): Timeline {
    const buckets = Array.from({ length: this.#last + 1 }, (_, at) => ({
      at_ms: this.#startMs + at * this.#bucketMs,
      requests: this.#requests[at]!,
      peak_per_second: this.#peaks[at]!,
      denied_now: this.#deniedNow[at]!,
      denied: this.#denied[at]!,
    }));
    return { bucket_ms: this.#bucketMs, buckets };
  }

  #fold(): void {
    for (const sums of [this.#requests, this.#deniedNow, this.#denied]) fold(sums, (one, other) => one + other);
    fold(this.#peaks, Math.max);
    this.#bucketMs *= 2;
    this.#last >>= 1;
  }
}

function fold(values: Float64Array, join: (one: number, other: number) => number): void {
  const half = values.length / 2;
  for (let i = 0; i < half; i++) values[i] = join(values[2 * i]!, values[2 * i + 1]!);
  values.fill(0, half);
}
