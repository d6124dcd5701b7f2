import type { UsageEvent } from "./usage-event.ts";

/**
 * Where usage events go. A sink only sends: batches, the bounded queue, deadlines and repeats are its queue's
 * (`sink-queue.ts`), which calls `send` with one batch at a time.
 */
export interface EventSink {
  /** `http`, `redis`, `file`, `kafka`: a label of metrics. */
  readonly kind: string;
  /** For logs and status, without secrets. */
  readonly where: string;
  /**
   * Resolves when the events are stored there. Rejects if they may not be, or with the signal's reason as soon as it is
   * aborted; the same batch is then sent again, later. Rejects with `EventsRefused` if sending it again cannot help. Connects when
   * needed, and again after an outage.
   */
  send(events: readonly UsageEvent[], signal: AbortSignal): Promise<void>;
  /** Ends connections, without waiting for anything in flight. */
  close(): Promise<void>;
}

/** The receiver understood the batch and will not have it, now or later. It is dropped, so that the next ones get through. */
export class EventsRefused extends Error {
  override readonly name = "EventsRefused";
}
