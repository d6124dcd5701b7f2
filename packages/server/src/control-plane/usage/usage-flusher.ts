import { type PolicyStore, PolicyStoreUnavailable, type UsageFlush, type UsageSum } from "@sluice/sql";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { UsageCounts, UsageSums } from "../../observe/usage/usage-sums.ts";

export interface UsageFlusherOptions {
  readonly sums: Pick<UsageSums, "take" | "forgetNames">;
  readonly store: Pick<PolicyStore, "note">;
  /** The name of this node, and what differs after each restart. */
  readonly node: string;
  readonly boot: string;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  /** Epoch milliseconds. Absent: the machine's clock. */
  readonly nowMs?: (() => number) | undefined;
  /** Absent: 10 s. Periods begin at multiples of it. */
  readonly everyMs?: number | undefined;
  /** The most sums, and denials of them, that wait for the store. Absent: a million, some 200 MB. */
  readonly maxWaiting?: number | undefined;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** Sums in one transaction. */
const sumsAtOnce = 5_000;

/** Numbers that only grow, but for the first. */
export interface UsageFlusherStats {
  /** Sums that wait for the store. */
  waiting: number;
  /** Sums that were stored, and sums dropped because too many waited. */
  stored: number;
  dropped: number;
}

/**
 * Moves a node's usage to the policy store, every ten seconds. While the store is unavailable, sums wait, up to a bound. Each
 * flush has the next number of this boot, and keeps it until the store has answered: one whose answer was lost is sent again, and
 * the store adds it once.
 */
export class UsageFlusher {
  readonly stats: UsageFlusherStats = { waiting: 0, stored: 0, dropped: 0 };
  readonly #options: UsageFlusherOptions;
  readonly #nowMs: () => number;
  readonly #everyMs: number;
  readonly #maxWaiting: number;
  #waiting: UsageFlush[] = [];
  /** Sums that wait, and their denials. */
  #weight = 0;
  #sequence = 0;
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isFailing = false;
  #periodMs: number;
  #isClosed = false;

  constructor(options: UsageFlusherOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
    this.#everyMs = options.everyMs ?? 10_000;
    this.#maxWaiting = options.maxWaiting ?? 1_000_000;
    this.#periodMs = this.#nowMs();
    this.#schedule();
  }

  /** Stores what was counted until now. Never rejects. */
  flush(): Promise<void> {
    this.#collect();
    this.#flushing ??= this.#send().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Stores the rest, and stops. What the store does not accept now is lost. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#flushing;
    await this.flush();
    const { waiting } = this.stats;
    if (waiting === 0) return;
    this.#options.log.error("usage.dropped", { sums: waiting, reason: "the server stops" });
    this.#waiting = [];
    this.#weight = 0;
    this.stats.dropped += waiting;
    this.stats.waiting = 0;
  }

  /** At the end of a period, so that all that was counted belongs to one minute. */
  #schedule(): void {
    if (this.#isClosed || this.#everyMs === 0) return;
    const waitMs = this.#everyMs - (this.#nowMs() % this.#everyMs);
    this.#timer = setTimeout(() => {
      void this.flush();
      this.#schedule();
    }, waitMs).unref();
  }

  #collect(): void {
    const startMs = Math.floor(this.#periodMs / minuteMs) * minuteMs;
    const day = Math.floor(this.#periodMs / dayMs);
    this.#periodMs = this.#nowMs();
    if (Math.floor(this.#periodMs / dayMs) !== day) this.#options.sums.forgetNames();
    const shareOfDay = (this.#periodMs % dayMs) / dayMs;
    const sums = this.#options.sums.take(shareOfDay).map((counts) => sumFromCounts(counts, startMs));
    const { node, boot } = this.#options;
    for (let i = 0; i < sums.length; i += sumsAtOnce) {
      this.#sequence += 1;
      const flush = { node, boot, sequence: this.#sequence, sums: sums.slice(i, i + sumsAtOnce) };
      this.#waiting.push(flush);
      this.#weight += weigh(flush);
      this.stats.waiting += flush.sums.length;
    }
    this.#dropOldest();
  }

  /** The first one may be on its way. */
  #dropOldest(): void {
    while (this.#weight > this.#maxWaiting && this.#waiting.length > 1) {
      const [dropped] = this.#waiting.splice(this.#flushing === undefined ? 0 : 1, 1);
      if (dropped === undefined) return;
      this.#weight -= weigh(dropped);
      this.stats.waiting -= dropped.sums.length;
      this.stats.dropped += dropped.sums.length;
    }
  }

  async #send(): Promise<void> {
    const { store, log } = this.#options;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const flush = first;
      try {
        await store.note((note) => note.addUsage(flush));
        this.stats.stored += flush.sums.length;
      } catch (error) {
        if (error instanceof PolicyStoreUnavailable) {
          if (!this.#isFailing) log.warn("usage.waiting", { err: error });
          this.#isFailing = true;
          return;
        }
        // It would fail again, and all that follows would wait for it.
        log.error("usage.dropped", { err: error, sums: flush.sums.length });
        this.stats.dropped += flush.sums.length;
      }
      this.#waiting.shift();
      this.#weight -= weigh(flush);
      this.stats.waiting -= flush.sums.length;
      if (this.#isFailing) log.info("usage.stored_again", { dropped: this.stats.dropped });
      this.#isFailing = false;
    }
  }
}

/** Callers that bring windows along can have many denials kept apart. */
function weigh({ sums }: UsageFlush): number {
  return sums.reduce((weight, { denials }) => weight + 1 + denials.length, 0);
}

function sumFromCounts({ denials, ...counts }: UsageCounts, startMs: number): UsageSum {
  return { ...counts, startMs, denials: denials === undefined ? [] : [...denials.values()] };
}
