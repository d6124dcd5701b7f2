import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../telemetry/logger.ts";
import type { UsageEventReading } from "../telemetry/usage-event-metrics.ts";
import type { EventSink } from "./event-sink.ts";
import { type Pause, SinkQueue } from "./sink-queue.ts";
import type { UsageEvent } from "./usage-event.ts";
import { UsageSpill } from "./usage-spill.ts";

export interface UsageStreamOptions {
  readonly sinks: readonly EventSink[];
  /** The most events that wait for one sink. */
  readonly maxEvents: number;
  /** Keeps events of single decisions on disk until every sink has them. Undefined: memory alone. */
  readonly spill?: { readonly path: string; readonly maxBytes: number } | undefined;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly pause?: Pause | undefined;
  readonly sendWithinMs?: number | undefined;
}

/** How often a replay looks for room. */
const roomEveryMs = 100;

/** The one stream of events: to every sink's queue, through the spill file if there is one, and to those who watch. */
export class UsageStream {
  readonly queues: readonly SinkQueue[];
  readonly #options: UsageStreamOptions;
  readonly #watchers = new Set<(event: UsageEvent) => void>();
  #spill: UsageSpill | undefined;
  #replaying: Promise<void> | undefined;

  private constructor(options: UsageStreamOptions) {
    const { maxEvents, log, pause, sendWithinMs } = options;
    this.#options = options;
    const onSettled = options.spill && ((event: UsageEvent): void => this.#spill?.settle(event));
    this.queues = options.sinks.map((sink) => new SinkQueue({ sink, log, maxEvents, onSettled, pause, sendWithinMs }));
  }

  static async open(options: UsageStreamOptions): Promise<UsageStream> {
    const stream = new UsageStream(options);
    const { spill, log, sinks } = options;
    if (spill === undefined || sinks.length === 0) return stream;
    const onWritten = (event: UsageEvent): void => stream.#offer(event);
    stream.#spill = await UsageSpill.open({ ...spill, copies: sinks.length, onWritten, log });
    stream.#replaying = stream.#replay(stream.#spill);
    return stream;
  }

  /** Whether anything becomes of an event. */
  get isHeard(): boolean {
    return this.queues.length > 0 || this.#watchers.size > 0;
  }

  publish(event: UsageEvent): void {
    for (const watch of this.#watchers) watch(event);
    if (this.#spill !== undefined && event.data.kind === "each") this.#spill.add(event);
    else this.#offer(event);
  }

  /** Calls with every event, which must neither throw nor wait. Returns what ends that. */
  watch(onEvent: (event: UsageEvent) => void): () => void {
    this.#watchers.add(onEvent);
    return () => this.#watchers.delete(onEvent);
  }

  /** Sends what waits, for this long at most. What is left is logged, and stays in the spill file if there is one. */
  async close(withinMs: number): Promise<void> {
    await this.#spill?.written();
    await Promise.all(
      this.queues.map(async (queue) => {
        const left = await queue.close(withinMs);
        const { kind: sink, where } = queue.sink;
        if (left > 0)
          this.#options.log.warn("usage_events.left", { sink, where, left, kept: this.#spill !== undefined });
      }),
    );
    await this.#spill?.close();
    await this.#replaying;
  }

  /** For metrics. */
  read(): UsageEventReading {
    return {
      sinks: this.queues.map(({ sink, waiting, waitingBytes, stats }) => ({
        ...{ sink: `${sink.kind} ${sink.where}`, waiting, waitingBytes },
        ...stats,
      })),
      spill: this.#spill?.stats,
    };
  }

  #offer(event: UsageEvent): void {
    for (const queue of this.queues) queue.offer(event);
  }

  /** Never rejects: a spill file that cannot be read back does not keep a server from working. */
  async #replay(spill: UsageSpill): Promise<void> {
    const hasRoom = (): boolean => this.queues.every((queue) => queue.hasRoom);
    const wait = (): Promise<unknown> => sleep(roomEveryMs, undefined, { ref: false });
    await spill
      .replay(hasRoom, wait)
      .catch((error: unknown) =>
        this.#options.log.warn("usage_events.spill_failed", { file: this.#options.spill?.path, reason: String(error) }),
      );
  }
}
