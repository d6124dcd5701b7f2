import type { EventSink } from "../event-sink.ts";
import { type UsageEvent, usageEventType } from "../usage-event.ts";

/** An event of a single decision. */
export function testEvent(id: string): UsageEvent {
  const data = {
    kind: "each",
    key: "u1",
    cost: 1,
    allowed: true,
    ts: 0,
    requests: 1,
    reason: "within_limits",
    node: "n",
  };
  return {
    ...{ specversion: "1.0", type: usageEventType, source: "/sluice", id, time: "1970-01-01T00:00:00.000Z" },
    ...{ subject: "acme", datacontenttype: "application/json", data: data as UsageEvent["data"] },
  };
}

export function testEvents(count: number, name = "e"): UsageEvent[] {
  return Array.from({ length: count }, (_, i) => testEvent(`${name}${i}`));
}

/** A sink in this process that keeps the batches it accepts. */
export interface RecordingSink extends EventSink {
  readonly batches: (readonly UsageEvent[])[];
  /** Every send, also those that failed. */
  attempts: number;
  /** Called before each batch is accepted; what it throws is the answer. */
  before: (events: readonly UsageEvent[], signal: AbortSignal) => Promise<void> | void;
  readonly ids: readonly string[];
  closed: boolean;
}

export function createRecordingSink(where = "here"): RecordingSink {
  const sink: RecordingSink = {
    ...{ kind: "test", where, batches: [], attempts: 0, closed: false, before: () => undefined },
    get ids(): readonly string[] {
      return sink.batches.flat().map(({ id }) => id);
    },
    async send(events, signal): Promise<void> {
      sink.attempts += 1;
      await sink.before(events, signal);
      sink.batches.push(events);
    },
    async close(): Promise<void> {
      sink.closed = true;
    },
  };
  return sink;
}

/** Pauses that end when a test says so. */
export class ManualPauses {
  #waiting: { readonly ms: number; readonly end: () => void }[] = [];

  readonly pause = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      const entry = { ms, end: resolve };
      this.#waiting.push(entry);
      signal.addEventListener("abort", () => {
        this.#waiting = this.#waiting.filter((one) => one !== entry);
        reject(signal.reason as Error);
      });
    });

  /** How long each pause is that has not ended. */
  get waitingMs(): readonly number[] {
    return this.#waiting.map(({ ms }) => ms);
  }

  /** Ends all pauses that have begun, and lets what follows run. */
  async end(): Promise<void> {
    const ended = this.#waiting;
    this.#waiting = [];
    for (const { end } of ended) end();
    await settle();
  }
}

/** Lets everything run that waits for nothing but its turn. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}
