import { type Clock, systemClock } from "sluice";
import { checkNames, checkOptions } from "../check-options.ts";
import { optionNumber } from "../option-number.ts";

export interface RetryBudgetOptions {
  /** Retries per request. Absent: 0.1, one in ten. */
  readonly share?: number | undefined;
  /** Retries that are there anyway, for callers with few requests. Absent: 10. */
  readonly perMinute?: number | undefined;
  /** Absent: the machine's. */
  readonly clock?: Clock | undefined;
}

/** However few `perMinute` are, so many can be saved up from requests. */
const leastSaved = 10;

/**
 * Keeps a fleet from storming: when everything is refused, most of what is sent must not be repetitions. In any stretch of
 * time there are at most
 *
 *     max(10, perMinute) + share × requests + perMinute × minutes
 *
 * retries. A retry that the budget has not left is not made, and its caller gets the answer that there is.
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
    // Tenths do not add up to a whole in binary: ten requests are worth one retry all the same.
    if (this.#left < 1 - 1e-9) return false;
    this.#left = Math.max(0, this.#left - 1);
    return true;
  }
}
