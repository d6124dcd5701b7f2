import type { Clock } from "sluice";
import { systemClock } from "sluice/internal";
import { checkNames, checkOptions } from "../check-options.ts";
import { optionNumber } from "../option-number.ts";

export interface RetryBudgetOptions {
  /** Retries per request. Default: 0.1, one in ten. */
  readonly share?: number | undefined;
  /** Retries that are always available, for callers with few requests. Default: 10. */
  readonly perMinute?: number | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock | undefined;
}

/** However small `perMinute` is, this many retries can be saved up from requests. */
const leastSaved = 10;

/**
 * Prevents a retry storm: when everything is refused, most of the traffic must not be retries. In any stretch of time there
 * are at most
 *
 *     max(10, perMinute) + share × requests + perMinute × minutes
 *
 * retries. If the budget has no retry left, none is made, and the caller gets the answer as it is.
 */
export class RetryBudget {
  readonly #share: number;
  readonly #perMs: number;
  readonly #most: number;
  readonly #clock: Clock;
  #left: number;
  #atMs: number;

  constructor(options: RetryBudgetOptions = {}) {
    checkOptions(options, { clock: "clock" });
    checkNames<RetryBudgetOptions>("RetryBudget", options, { share: true, perMinute: true, clock: true });
    const perMinute = optionNumber("perMinute", options.perMinute, 10, 0);
    this.#share = optionNumber("share", options.share, 0.1, 0);
    this.#perMs = perMinute / 60_000;
    this.#most = Math.max(leastSaved, perMinute);
    this.#clock = options.clock ?? systemClock;
    this.#left = Math.min(this.#most, perMinute);
    this.#atMs = this.#clock.nowMs();
  }

  /** A request is sent for the first time. */
  earn(): void {
    this.#left = Math.min(this.#most, this.#left + this.#share);
  }

  /** Takes a retry, if one is left. */
  spend(): boolean {
    const nowMs = this.#clock.nowMs();
    this.#left = Math.min(this.#most, this.#left + Math.max(0, nowMs - this.#atMs) * this.#perMs);
    this.#atMs = nowMs;
    // Tenths do not add up exactly in binary; ten requests must still be worth one retry.
    if (this.#left < 1 - 1e-9) return false;
    this.#left = Math.max(0, this.#left - 1);
    return true;
  }
}
