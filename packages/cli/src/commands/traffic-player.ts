import type { SimulatedRequest } from "@sluice/simulate";
import type { Clock, Decision } from "sluice";
import { LatencyCounts, type LatencyReport } from "./latency-counts.ts";

export interface TrafficPlayerOptions {
  /** How many times as fast as it was recorded; Infinity: as fast as the bounds allow. */
  readonly speed: number;
  readonly maxInFlight: number;
  readonly maxPerSecond: number;
  readonly maxRequests: number;
  readonly maxMs: number;
  readonly check: (request: SimulatedRequest) => Promise<Decision>;
  readonly clock: Clock;
  /** Waits so many milliseconds, or until `signal`. */
  readonly sleep: (ms: number) => Promise<unknown>;
  readonly signal: AbortSignal;
  readonly onProgress?: ((report: PlayedTraffic) => void) | undefined;
}

/** What was sent, and what came of it. */
export interface PlayedTraffic {
  readonly ended: "all sent" | "interrupted" | "count" | "time";
  readonly elapsed_ms: number;
  readonly sent: number;
  readonly allowed: number;
  readonly denied: number;
  /** Answered without counters: the server, or its counters, could not be asked. */
  readonly degraded: number;
  /** Refused as wrong, such as an `ip` that is no address. */
  readonly failed: number;
  readonly first_failure?: string | undefined;
  /** Sent later than they were due, by more than a tenth of a second. */
  readonly late: number;
  readonly lag_ms: { readonly mean: number; readonly max: number };
  readonly latency_ms: LatencyReport;
  /** Of those whose recorded decision is known: how many were decided in the same way. */
  readonly compared: number;
  readonly agreed: number;
}

const lateMs = 100;
/** Requests that were read and wait for their time. */
const mostWaiting = 20_000;
const tickMs = 2;
const progressMs = 500;

/** Sends recorded requests in their time, bounded in rate, number, time and how many are underway. */
export class TrafficPlayer {
  readonly #options: TrafficPlayerOptions;
  readonly #latencies = new LatencyCounts();
  #waiting: SimulatedRequest[] = [];
  #next = 0;
  #hasAll = false;
  #ended: PlayedTraffic["ended"] | undefined;
  #startMs: number | undefined;
  #firstMs = 0;
  #inFlight = 0;
  #sent = 0;
  #tokens: number;
  #tokensMs = 0;
  #lagSumMs = 0;
  #shownMs = 0;
  readonly #counts = { allowed: 0, denied: 0, degraded: 0, failed: 0, late: 0, lagMs: 0, compared: 0, agreed: 0 };
  #firstFailure: string | undefined;

  constructor(options: TrafficPlayerOptions) {
    this.#options = options;
    this.#tokens = Math.max(1, options.maxPerSecond / 50);
  }

  add(request: SimulatedRequest): void {
    this.#waiting.push(request);
  }

  /** Resolves when there is room for more requests; `false`: no more are sent. */
  async whenReady(): Promise<boolean> {
    while (this.#ended === undefined && this.#waiting.length - this.#next > mostWaiting)
      await this.#options.sleep(tickMs);
    return this.#ended === undefined;
  }

  /** No more requests will be added. */
  finish(): void {
    this.#hasAll = true;
  }

  /** Resolves when everything was sent and answered, or it has to end. */
  async play(): Promise<PlayedTraffic> {
    const { clock, sleep, signal } = this.#options;
    while (this.#ended === undefined) {
      this.#ended = signal.aborted ? "interrupted" : this.#sendDue();
      this.#showProgress();
      if (this.#ended === undefined) await sleep(tickMs);
    }
    this.#waiting = [];
    // Checks have a deadline, so this ends.
    while (this.#inFlight > 0) await new Promise((resolve) => setTimeout(resolve, tickMs));
    return this.report(clock.nowMs());
  }

  report(nowMs: number = this.#options.clock.nowMs()): PlayedTraffic {
    const { allowed, denied, degraded, failed, late, lagMs, compared, agreed } = this.#counts;
    return {
      ended: this.#ended ?? "all sent",
      elapsed_ms: this.#startMs === undefined ? 0 : Math.round(nowMs - this.#startMs),
      ...{ sent: this.#sent, allowed, denied, degraded, failed, first_failure: this.#firstFailure, late },
      lag_ms: { mean: round(this.#sent === 0 ? 0 : this.#lagSumMs / this.#sent), max: round(lagMs) },
      latency_ms: this.#latencies.report,
      ...{ compared, agreed },
    };
  }

  /** Sends what is due, and returns why it is over, if it is. */
  #sendDue(): PlayedTraffic["ended"] | undefined {
    const { clock, speed, maxInFlight, maxRequests, maxMs } = this.#options;
    const nowMs = clock.nowMs();
    this.#refill(nowMs);
    for (;;) {
      const request = this.#waiting[this.#next];
      if (request === undefined) return this.#hasAll ? "all sent" : undefined;
      if (this.#startMs === undefined) {
        this.#startMs = nowMs;
        this.#firstMs = request.timeMs;
      }
      if (nowMs - this.#startMs >= maxMs) return "time";
      if (this.#sent >= maxRequests) return "count";
      const dueMs = this.#startMs + (request.timeMs - this.#firstMs) / speed;
      if (dueMs > nowMs || this.#inFlight >= maxInFlight || this.#tokens < 1) return undefined;
      this.#tokens -= 1;
      this.#takeNext();
      this.#noteLag(speed === Number.POSITIVE_INFINITY ? 0 : nowMs - dueMs);
      void this.#send(request, nowMs);
    }
  }

  #takeNext(): void {
    this.#next += 1;
    if (this.#next < mostWaiting) return;
    this.#waiting = this.#waiting.slice(this.#next);
    this.#next = 0;
  }

  #refill(nowMs: number): void {
    const { maxPerSecond } = this.#options;
    const most = Math.max(1, maxPerSecond / 50);
    if (this.#tokensMs > 0) this.#tokens += ((nowMs - this.#tokensMs) * maxPerSecond) / 1000;
    this.#tokens = Math.min(most, this.#tokens);
    this.#tokensMs = nowMs;
  }

  #noteLag(lagMs: number): void {
    this.#lagSumMs += lagMs;
    if (lagMs > this.#counts.lagMs) this.#counts.lagMs = lagMs;
    if (lagMs > lateMs) this.#counts.late += 1;
  }

  async #send(request: SimulatedRequest, sentMs: number): Promise<void> {
    const { check, clock } = this.#options;
    const counts = this.#counts;
    this.#sent += 1;
    this.#inFlight += 1;
    try {
      const { allowed, degraded } = await check(request);
      this.#latencies.add(clock.nowMs() - sentMs);
      if (degraded !== undefined) counts.degraded += 1;
      if (allowed) counts.allowed += 1;
      else counts.denied += 1;
      if (request.wasDenied === undefined) return;
      counts.compared += 1;
      if (allowed !== request.wasDenied) counts.agreed += 1;
    } catch (error) {
      counts.failed += 1;
      this.#firstFailure ??= error instanceof Error ? error.message : String(error);
    } finally {
      this.#inFlight -= 1;
    }
  }

  #showProgress(): void {
    const nowMs = this.#options.clock.nowMs();
    if (nowMs - this.#shownMs < progressMs) return;
    this.#shownMs = nowMs;
    this.#options.onProgress?.(this.report(nowMs));
  }
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
