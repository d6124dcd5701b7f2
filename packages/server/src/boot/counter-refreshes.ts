import type { RateLimitsRuntime } from "sluice/policy-text";
import type { RunningCounters } from "../data-plane/counters/running-counters.ts";

/** Compares the counter servers with what the policy files say about them, once per change. */
export class CounterRefreshes {
  readonly #counters: Pick<RunningCounters, "refresh">;
  readonly #runtime: () => RateLimitsRuntime | undefined;
  #begun = 0;
  /** The refresh in progress. */
  #running: Promise<void> | undefined;

  constructor(counters: Pick<RunningCounters, "refresh">, runtime: () => RateLimitsRuntime | undefined) {
    this.#counters = counters;
    this.#runtime = runtime;
  }

  begin(): void {
    this.#begun += 1;
    const refresh = this.#counters.refresh(this.#runtime()).finally(() => {
      if (this.#running === refresh) this.#running = undefined;
    });
    this.#running = refresh;
  }

  /**
   * Compares the counters with the files that `reload` reads, even if those are unchanged: certificates may have
   * changed. A change that the file watcher found first is applied once: a refresh in progress is joined, not repeated.
   */
  async follow(reload: () => Promise<void>): Promise<void> {
    const [before, underWay] = [this.#begun, this.#running];
    await reload();
    if (this.#begun === before && underWay === undefined) this.begin();
    await this.#running;
  }
}
