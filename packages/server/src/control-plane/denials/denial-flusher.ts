import { type DenialNote, type PolicyStore, PolicyStoreUnavailable } from "@sluice/sql";
import type { DenialSamples } from "../../observe/denials/denial-samples.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { type NoteOptions, noteFromSample } from "./note-from-sample.ts";

export interface DenialFlusherOptions extends NoteOptions {
  readonly samples: Pick<DenialSamples, "take">;
  readonly store: Pick<PolicyStore, "note">;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  /** Epoch milliseconds. Absent: the machine's clock. */
  readonly nowMs?: (() => number) | undefined;
  /** Absent: 10 s. 0: only when asked. */
  readonly everyMs?: number | undefined;
  /** The most records that wait for the store: the newest. Absent: 5 000, some 10 MB. */
  readonly maxWaiting?: number | undefined;
}

/** Readers that ask again and again get no larger a sample. */
const leastMs = 1_000;

export interface DenialFlusherStats {
  /** Records that wait for the store. */
  waiting: number;
  /** Records that were stored, and records dropped because too many waited. */
  stored: number;
  dropped: number;
}

/**
 * Moves a node's sample of denials to the policy store, every ten seconds and before they are read here. While the store is
 * unavailable, the newest wait. Adding a record twice changes nothing, so one whose answer was lost is sent again.
 */
export class DenialFlusher {
  readonly stats: DenialFlusherStats = { waiting: 0, stored: 0, dropped: 0 };
  readonly #options: DenialFlusherOptions;
  readonly #nowMs: () => number;
  readonly #maxWaiting: number;
  readonly #timer: NodeJS.Timeout | undefined;
  #waiting: DenialNote[] = [];
  #takenMs = -Infinity;
  #flushing: Promise<void> | undefined;
  #isFailing = false;

  constructor(options: DenialFlusherOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
    this.#maxWaiting = options.maxWaiting ?? 5_000;
    const { everyMs = 10_000 } = options;
    this.#timer = everyMs === 0 ? undefined : setInterval(() => void this.flush(), everyMs).unref();
  }

  /** Stores what was denied until now, but at most once a second. Never rejects. */
  flush(): Promise<void> {
    const nowMs = this.#nowMs();
    if (nowMs - this.#takenMs >= leastMs || nowMs < this.#takenMs) this.#collect(nowMs);
    this.#flushing ??= this.#send().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Stores the rest, and stops. What the store does not accept now is lost. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    this.#collect(this.#nowMs());
    await this.flush();
    const { waiting } = this.stats;
    if (waiting === 0) return;
    this.#options.log.error("denials.dropped", { records: waiting, reason: "the server stops" });
    this.#waiting = [];
    this.stats.dropped += waiting;
    this.stats.waiting = 0;
  }

  #collect(nowMs: number): void {
    this.#takenMs = nowMs;
    const { samples, node, ipv6PrefixBits } = this.#options;
    this.#waiting.push(...samples.take().map((sample) => noteFromSample(sample, { node, ipv6PrefixBits })));
    const beyond = this.#waiting.length - this.#maxWaiting;
    if (beyond > 0) {
      this.#waiting.splice(0, beyond);
      this.stats.dropped += beyond;
    }
    this.stats.waiting = this.#waiting.length;
  }

  async #send(): Promise<void> {
    const { store, log } = this.#options;
    while (this.#waiting.length > 0) {
      const sent = this.#waiting;
      this.#waiting = [];
      try {
        await store.note((note) => note.addDenials(sent));
        this.stats.stored += sent.length;
      } catch (error) {
        if (error instanceof PolicyStoreUnavailable) {
          this.#waiting = [...sent, ...this.#waiting];
          if (!this.#isFailing) log.warn("denials.waiting", { err: error });
          this.#isFailing = true;
          return;
        }
        // They would fail again, and all that follow would wait for them.
        log.error("denials.dropped", { err: error, records: sent.length });
        this.stats.dropped += sent.length;
      } finally {
        this.stats.waiting = this.#waiting.length;
      }
      if (this.#isFailing) log.info("denials.stored_again", { dropped: this.stats.dropped });
      this.#isFailing = false;
    }
  }
}
