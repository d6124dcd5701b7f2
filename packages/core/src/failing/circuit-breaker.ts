export type CircuitState = "closed" | "open" | "half_open";

/** How to proceed: call as usual, call as the one probe that tests for recovery, or do not call. */
export type Admission = "call" | "probe" | "refuse";

export interface CircuitBreakerOptions {
  /** Opens after this many failures in a row. Absent: 5. */
  readonly failuresInARow?: number;
  /** Opens when more than this share of the calls within `overMs` failed. Absent: 0.01. */
  readonly failureShare?: number;
  /** With fewer calls than this within `overMs`, their share is ignored. Absent: 100. */
  readonly minCalls?: number;
  /** Absent: 30 000. */
  readonly overMs?: number;
  /** How long to wait before the first probe, and between probes. Absent: 5 000. */
  readonly probeEveryMs?: number;
  /** Called on every change of state with the reason, for logs and metrics. */
  readonly onChange?: (state: CircuitState, why: string) => void;
}

/** The sliding period for the share advances in this many steps. */
const buckets = 30;
const heardWithinMs = 2000;

/**
 * Keeps callers from waiting for a server that does not answer. It counts calls, however many checks each carries, has
 * no timer, and takes the time as a parameter.
 *
 *     closed ── 5 failures in a row, or over 1 % of the calls of 30 s ──► open
 *     open ── 5 s after it opened, and after each probe ──► half open: one probe
 *     half open ── the probe succeeds ──► closed, with a clean slate
 *               ── it fails, or is not heard of for 5 s ──► open
 *
 * An admitted caller notes `generation` and settles under it. It changes when the circuit opens, closes or probes, so
 * calls that began before that no longer count: a late answer neither closes an open circuit nor keeps it open.
 *
 *     const admission = breaker.admit(nowMs);
 *     if (admission === "refuse") throw …;
 *     const { generation } = breaker;
 *     … breaker.succeed(laterMs, generation) or breaker.fail(laterMs, generation)
 */
export class CircuitBreaker {
  #failuresInARow: number;
  readonly #failureShare: number;
  readonly #minCalls: number;
  #probeEveryMs: number;
  readonly #overMs: number;
  readonly #bucketMs: number;
  readonly #onChange: CircuitBreakerOptions["onChange"];
  #state: CircuitState = "closed";
  #generation = 0;
  #inARow = 0;
  /** When it opened, or the last probe began. */
  #sinceMs = 0;
  /** The latest time seen, and what is added to later ones, so that time continues after a clock steps back. */
  #lastMs = Number.NEGATIVE_INFINITY;
  #steadyingMs = 0;
  /** Calls and failures by bucket of time, the current bucket and its slot, and the sums over all of them. */
  readonly #callsIn = new Float64Array(buckets);
  readonly #failuresIn = new Float64Array(buckets);
  #bucket = Number.NEGATIVE_INFINITY;
  #bucketEndMs = Number.NEGATIVE_INFINITY;
  #slot = 0;
  #calls = 0;
  #failures = 0;
  #succeededMs = Number.NEGATIVE_INFINITY;

  constructor(options: CircuitBreakerOptions = {}) {
    this.#failuresInARow = options.failuresInARow ?? 5;
    this.#failureShare = options.failureShare ?? 0.01;
    this.#minCalls = options.minCalls ?? 100;
    this.#overMs = options.overMs ?? 30_000;
    this.#probeEveryMs = options.probeEveryMs ?? 5_000;
    this.#bucketMs = this.#overMs / buckets;
    this.#onChange = options.onChange;
  }

  /** Changes the number of failures in a row and the time between probes. State and counts stay. */
  configure({
    failuresInARow = 5,
    probeEveryMs = 5_000,
  }: Pick<CircuitBreakerOptions, "failuresInARow" | "probeEveryMs">): void {
    this.#failuresInARow = failuresInARow;
    this.#probeEveryMs = probeEveryMs;
  }

  get state(): CircuitState {
    return this.#state;
  }

  /** The generation that admitted calls settle under. */
  get generation(): number {
    return this.#generation;
  }

  /** `eager`: there is a sign of recovery, such as a new connection, so a probe need not wait. */
  admit(nowMs: number, eager = false): Admission {
    if (this.#state === "closed") return "call";
    const atMs = this.#steady(nowMs);
    const early = atMs - this.#sinceMs < this.#probeEveryMs;
    if (early && !(eager && this.#state === "open")) return "refuse";
    this.#sinceMs = atMs;
    this.#generation += 1;
    if (this.#state !== "half_open") this.#change("half_open", "a probe finds out whether it answers again");
    return "probe";
  }

  /**
   * Whether a call has succeeded within the last two seconds. A failure that was not the server's fault is then not
   * held against it.
   */
  isHeard(nowMs: number): boolean {
    return nowMs - this.#succeededMs < heardWithinMs;
  }

  succeed(nowMs: number, generation: number): void {
    this.#succeededMs = nowMs;
    if (generation !== this.#generation) return;
    if (this.#state === "closed") {
      this.#inARow = 0;
      this.#count(this.#steady(nowMs), 0);
    } else {
      this.#generation += 1;
      this.#change("closed", "the probe was answered");
    }
  }

  fail(nowMs: number, generation: number): void {
    if (generation !== this.#generation) return;
    const atMs = this.#steady(nowMs);
    if (this.#state === "closed") {
      this.#inARow += 1;
      if (this.#inARow >= this.#failuresInARow) this.#open(atMs, `${this.#inARow} calls in a row failed`);
      else this.#count(atMs, 1);
    } else {
      this.#generation += 1;
      this.#change("open", "the probe failed");
    }
  }

  #count(atMs: number, failed: 0 | 1): void {
    if (atMs >= this.#bucketEndMs) this.#beginBucket(atMs);
    const slot = this.#slot;
    this.#callsIn[slot]! += 1;
    this.#failuresIn[slot]! += failed;
    this.#calls += 1;
    this.#failures += failed;
    if (this.#calls >= this.#minCalls && this.#failures > this.#failureShare * this.#calls) {
      this.#open(atMs, `${this.#failures} of ${this.#calls} calls within ${this.#overMs} ms failed`);
    }
  }

  /** Begins the bucket of this moment, and empties those that are too old by then. */
  #beginBucket(atMs: number): void {
    const bucket = Math.floor(atMs / this.#bucketMs);
    const oldest = Math.max(this.#bucket + 1, bucket - buckets + 1);
    for (let one = oldest; one <= bucket; one++) {
      // Time may have any origin, and so be negative.
      this.#slot = ((one % buckets) + buckets) % buckets;
      this.#calls -= this.#callsIn[this.#slot]!;
      this.#failures -= this.#failuresIn[this.#slot]!;
      this.#callsIn[this.#slot] = 0;
      this.#failuresIn[this.#slot] = 0;
    }
    this.#bucket = bucket;
    this.#bucketEndMs = (bucket + 1) * this.#bucketMs;
  }

  #open(atMs: number, why: string): void {
    this.#forget();
    this.#sinceMs = atMs;
    this.#generation += 1;
    this.#change("open", why);
  }

  #forget(): void {
    this.#inARow = 0;
    this.#callsIn.fill(0);
    this.#failuresIn.fill(0);
    this.#calls = 0;
    this.#failures = 0;
  }

  #change(state: CircuitState, why: string): void {
    this.#state = state;
    this.#onChange?.(state, why);
  }

  /**
   * Time that never runs back. Slightly out-of-order times stand still; after a step back of more than a bucket, time
   * continues from where it was, so that neither a probe nor the end of a bucket has to wait for the old time.
   */
  #steady(nowMs: number): number {
    const atMs = nowMs + this.#steadyingMs;
    if (atMs >= this.#lastMs) {
      this.#lastMs = atMs;
      return atMs;
    }
    if (this.#lastMs - atMs > this.#bucketMs) this.#steadyingMs += this.#lastMs - atMs;
    return this.#lastMs;
  }
}
