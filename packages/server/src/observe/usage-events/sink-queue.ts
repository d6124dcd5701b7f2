import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../telemetry/logger.ts";
import { type EventSink, EventsRefused } from "./event-sink.ts";
import { type UsageEvent, usageEventBytes, usualEventBytes } from "./usage-event.ts";

export interface SinkQueueOptions {
  readonly sink: EventSink;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  /** The most events that wait, and in KiB the memory that they may take together. Further ones are dropped. */
  readonly maxEvents: number;
  /** Called with every event that need not be sent to this sink again: it has it, refused it, or it was dropped. */
  readonly onSettled?: ((event: UsageEvent) => void) | undefined;
  /** Waits this many milliseconds; rejects when aborted. Absent: by the machine's clock, without keeping the process alive. */
  readonly pause?: Pause | undefined;
  /** How long one send may take. */
  readonly sendWithinMs?: number | undefined;
}

export type Pause = (ms: number, signal: AbortSignal) => Promise<unknown>;

/** Events in one batch, and how long the first of them waits for the others. */
const batchSize = 100;
const lingerMs = 1_000;
const firstRetryMs = 250;
const longestRetryMs = 10_000;
const defaultSendWithinMs = 10_000;
const refusalLoggedEveryMs = 60_000;

/** Why events were dropped: too many waited, the receiver refuses them, or the server stopped. */
export type DropReason = "full" | "refused" | "stopped";

/** Numbers that only grow. */
export interface SinkQueueStats {
  sent: number;
  /** Sends that failed; most are repeated. */
  failed: number;
  readonly dropped: Record<DropReason, number>;
}

/**
 * The events that wait for one sink. A batch leaves when a hundred wait, or a second after the first of them, and stays in the
 * queue until the sink has it, so an outage loses nothing that fits:
 *
 *     waiting ──100, or 1 s──► sending ──resolved──► gone
 *        ▲                        │ failed, or late
 *        └──── pause, doubling ◄──┘
 *
 * One batch is on its way at a time. Other sinks have queues of their own, and no decision waits for any.
 */
export class SinkQueue {
  readonly sink: EventSink;
  readonly stats: SinkQueueStats = { sent: 0, failed: 0, dropped: { full: 0, refused: 0, stopped: 0 } };
  readonly #options: SinkQueueOptions;
  readonly #pause: Pause;
  readonly #closing = new AbortController();
  /** In the order they came. The last one still grows, unless it is on its way. */
  #batches: UsageEvent[][] = [];
  #waiting = 0;
  #waitingBytes = 0;
  #inFlight: UsageEvent[] | undefined;
  #running: Promise<void> | undefined;
  #lingering = false;
  #failures = 0;
  /** Whether the receiver refused all of a batch, and nothing was accepted since. */
  #refusesAll = false;
  #refusalLoggedMs = -Infinity;
  #isClosed = false;

  constructor(options: SinkQueueOptions) {
    this.#options = options;
    this.sink = options.sink;
    this.#pause = options.pause ?? ((ms, signal) => sleep(ms, undefined, { signal, ref: false }));
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** About how much memory the events that wait take. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Whether the last send failed. */
  get failing(): boolean {
    return this.#failures > 0;
  }

  /** Whether there is room for one more, however large. */
  get hasRoom(): boolean {
    const { maxEvents } = this.#options;
    return this.#waiting < maxEvents && this.#waitingBytes < maxEvents * usualEventBytes;
  }

  offer(event: UsageEvent): void {
    // Not settled: a spill file keeps it for the next start.
    if (this.#isClosed) {
      this.stats.dropped.stopped += 1;
      return;
    }
    if (!this.hasRoom) {
      this.stats.dropped.full += 1;
      this.#options.onSettled?.(event);
      return;
    }
    const last = this.#batches.at(-1);
    if (last === undefined || last === this.#inFlight || last.length >= batchSize) this.#batches.push([event]);
    else last.push(event);
    this.#waiting += 1;
    this.#waitingBytes += usageEventBytes(event);
    if (this.#running !== undefined) return;
    if (this.#hasFullBatch) this.#run();
    else if (!this.#lingering) void this.#linger();
  }

  /** Sends the rest, for this long at most, and closes the sink. Returns how many events are left, which are lost here. */
  async close(withinMs: number): Promise<number> {
    this.#isClosed = true;
    const timer = setTimeout(() => this.#closing.abort(new Error("the server stops")), withinMs);
    if (this.#waiting > 0) this.#run();
    // One that was about to end when this began is followed by another.
    while (this.#running !== undefined) await this.#running;
    clearTimeout(timer);
    this.#closing.abort(new Error("the server stops"));
    await this.sink.close().catch(() => undefined);
    const left = this.#waiting;
    this.stats.dropped.stopped += left;
    this.#batches = [];
    this.#waiting = 0;
    this.#waitingBytes = 0;
    return left;
  }

  async #linger(): Promise<void> {
    this.#lingering = true;
    await this.#pause(lingerMs, this.#closing.signal).catch(() => undefined);
    this.#lingering = false;
    if (this.#waiting > 0) this.#run();
  }

  #run(): void {
    this.#running ??= this.#sendAll().finally(() => {
      this.#running = undefined;
      // What came meanwhile, and is no full batch yet, waits for others.
      if (this.#canSend && (this.#hasFullBatch || this.#isClosed)) this.#run();
      else if (!this.#lingering && this.#canSend) void this.#linger();
    });
  }

  get #canSend(): boolean {
    return this.#waiting > 0 && !this.#closing.signal.aborted;
  }

  get #hasFullBatch(): boolean {
    return this.#batches.length > 1 || this.#waiting >= batchSize;
  }

  /** The batch that is due, and full ones behind it. */
  async #sendAll(): Promise<void> {
    for (let first = true; this.#canSend && (first || this.#isClosed || this.#hasFullBatch); first = false)
      await this.#sendFirst();
  }

  /** Until the first batch is settled, or the queue is closed. */
  async #sendFirst(): Promise<void> {
    const batch = this.#batches[0]!;
    this.#inFlight = batch;
    const sentBefore = this.stats.sent;
    if (!(await this.#deliver(batch))) return;
    this.#refusesAll = this.stats.sent === sentBefore;
    this.#inFlight = undefined;
    this.#batches.shift();
  }

  /**
   * Until each event is settled; false if the queue was closed before. One event that the receiver will not have must not take
   * others with it, so a batch that is refused is sent again in halves, unless the receiver has refused all of the last one.
   */
  async #deliver(events: readonly UsageEvent[]): Promise<boolean> {
    while (!this.#closing.signal.aborted) {
      try {
        await this.#send(events);
        this.stats.sent += events.length;
        this.#noteSent();
      } catch (error) {
        if (!(error instanceof EventsRefused)) {
          this.#noteFailed(error);
          await this.#pause(this.#retryMs(), this.#closing.signal).catch(() => undefined);
          continue;
        }
        this.stats.failed += 1;
        if (events.length > 1 && !this.#refusesAll) {
          const half = Math.ceil(events.length / 2);
          return (await this.#deliver(events.slice(0, half))) && this.#deliver(events.slice(half));
        }
        this.stats.dropped.refused += events.length;
        this.#noteRefused(error);
      }
      for (const event of events) this.#settle(event);
      return true;
    }
    return false;
  }

  #settle(event: UsageEvent): void {
    this.#waiting -= 1;
    this.#waitingBytes -= usageEventBytes(event);
    this.#options.onSettled?.(event);
  }

  /** A sink that ignores the signal is not waited for either. */
  async #send(batch: readonly UsageEvent[]): Promise<void> {
    const late = new AbortController();
    const { sendWithinMs = defaultSendWithinMs } = this.#options;
    const signal = AbortSignal.any([late.signal, this.#closing.signal]);
    const timer = setTimeout(() => late.abort(new Error(`no answer within ${sendWithinMs} ms`)), sendWithinMs);
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
    try {
      await Promise.race([this.sink.send(batch, signal), aborted]);
    } finally {
      clearTimeout(timer);
    }
  }

  #retryMs(): number {
    const longest = Math.min(firstRetryMs * 2 ** Math.min(this.#failures - 1, 10), longestRetryMs);
    return Math.round(longest * (0.5 + Math.random() / 2));
  }

  #noteSent(): void {
    if (this.#failures > 0 || this.#refusesAll)
      this.#options.log.info("usage_events.recovered", { ...this.#place, dropped: this.stats.dropped });
    this.#failures = 0;
    this.#refusesAll = false;
  }

  #noteFailed(error: unknown): void {
    this.stats.failed += 1;
    this.#failures += 1;
    if (this.#failures > 1 || this.#closing.signal.aborted) return;
    this.#options.log.warn("usage_events.failed", {
      ...this.#place,
      reason: failureReason(error),
      waiting: this.#waiting,
    });
  }

  /** Callers may be able to bring about refusals, so not each is logged. */
  #noteRefused(error: EventsRefused): void {
    const nowMs = performance.now();
    if (nowMs - this.#refusalLoggedMs < refusalLoggedEveryMs) return;
    this.#refusalLoggedMs = nowMs;
    const reason = failureReason(error);
    this.#options.log.error("usage_events.refused", { ...this.#place, reason, refused: this.stats.dropped.refused });
  }

  get #place(): { readonly sink: string; readonly where: string } {
    return { sink: this.sink.kind, where: this.sink.where };
  }
}

/** Why a send failed. `fetch` hides the reason in its cause. */
function failureReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error as { readonly cause?: { readonly code?: unknown; readonly message?: unknown } };
  const inner = cause?.code ?? cause?.message;
  return typeof inner === "string" ? `${error.message}: ${inner}` : error.message;
}
