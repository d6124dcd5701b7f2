export interface LookTimes {
  /** The least time between a look and a requested one. */
  readonly everyMs: number;
  /** The time until the next look after one that found something wrong, and after one that found all well. */
  readonly againMs: number;
  readonly anywayMs: number;
}

/**
 * When a topology is examined: one look at a time, soon after a suspicion, and now and then anyway.
 *
 *     idle ──soon()──► due ──timer──► looking ──► due again, sooner if not all was well
 */
export class Looks {
  readonly #times: LookTimes;
  readonly #look: () => Promise<boolean>;
  #looking = false;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;
  #closed = false;

  /** `look` resolves with whether all is well. */
  constructor(times: LookTimes, look: () => Promise<boolean>) {
    this.#times = times;
    this.#look = look;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Requests a look. One that is running will do. */
  soon(): void {
    if (this.#closed || this.#looking) return;
    this.#schedule(Math.max(this.#lookedMs + this.#times.everyMs - performance.now(), 0));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** Unless a look is due sooner anyway. */
  #schedule(waitMs: number): void {
    const dueMs = performance.now() + waitMs;
    if (this.#timer !== undefined && this.#dueMs <= dueMs) return;
    clearTimeout(this.#timer);
    this.#dueMs = dueMs;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#run();
    }, waitMs);
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    if (this.#looking || this.#closed) return;
    this.#looking = true;
    let well = false;
    try {
      well = await this.#look();
    } finally {
      this.#looking = false;
      this.#lookedMs = performance.now();
      if (!this.#closed) this.#schedule(well ? this.#times.anywayMs : this.#times.againMs);
    }
  }
}
