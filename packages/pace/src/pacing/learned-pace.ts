import type { LimitReading } from "../reading/limit-reading.ts";
import type { RateLimitReading } from "../reading/read-rate-limit.ts";

export interface LearnedPaceOptions {
  /** Calls are spread once less than this share of a limit is left. */
  readonly spreadBelow: number;
  /** Calls are never further apart than this because of reported limits. */
  readonly maxSpacingMs: number;
}

/**
 * The limits that answers have reported, and when a caller may call next by them. A requested wait stops every call until
 * it is over. Reported limits only slow calls down: `remaining` is spread over the time until the reset,
 *
 *     spacing = resetAfter ÷ (remaining + 1)
 *
 * so that the last of them is used just before the reset. Against a limit that refills steadily this settles at its rate
 * with half of it left; against a fixed window it uses the window up exactly. Reported limits never stop calls: a server
 * may mean by its reset that the whole limit is back, long after one call would pass.
 */
export class LearnedPace {
  readonly #options: LearnedPaceOptions;
  #stopUntilMs = Number.NEGATIVE_INFINITY;
  #spacingMs = 0;
  #spacedUntilMs = Number.NEGATIVE_INFINITY;
  #lastStartMs = Number.NEGATIVE_INFINITY;
  #lastCost = 0;

  constructor(options: LearnedPaceOptions) {
    this.#options = options;
  }

  /** `othersRunning` are running calls that the answer may not have counted yet. */
  learn(reading: RateLimitReading, nowMs: number, othersRunning: number): void {
    // The app may have made the reading itself: a value that is not a number counts as absent.
    if (isAmount(reading.retryAfterMs)) {
      this.#stopUntilMs = Math.max(this.#stopUntilMs, nowMs + reading.retryAfterMs);
    }
    let spacingMs: number | undefined;
    for (const limit of reading.limits) {
      const wantedMs = this.#spacingBy(limit, othersRunning);
      if (wantedMs === undefined || (spacingMs !== undefined && wantedMs <= spacingMs)) continue;
      spacingMs = wantedMs;
      this.#spacedUntilMs = nowMs + (limit.resetAfterMs ?? 0);
    }
    // An answer without limits changes nothing.
    if (spacingMs !== undefined) this.#spacingMs = spacingMs;
  }

  #spacingBy(limit: LimitReading, othersRunning: number): number | undefined {
    const { remaining, resetAfterMs, unit } = limit ?? {};
    if (!isAmount(remaining) || !isAmount(resetAfterMs) || unit !== undefined) return undefined;
    const left = Math.max(0, remaining - othersRunning);
    if (limit.limit !== undefined && left >= limit.limit * this.#options.spreadBelow) return 0;
    return Math.min(this.#options.maxSpacingMs, resetAfterMs / (left + 1));
  }

  started(nowMs: number, cost: number): void {
    this.#lastStartMs = nowMs;
    this.#lastCost = cost;
  }

  /** The time until which the server asked for no calls. */
  get stopUntilMs(): number {
    return this.#stopUntilMs;
  }

  /** When the next call is due, so that the remainder lasts until the reset. */
  get spacedFromMs(): number {
    const spacingMs = Math.min(this.#options.maxSpacingMs, this.#spacingMs * this.#lastCost);
    return Math.min(this.#spacedUntilMs, this.#lastStartMs + spacingMs);
  }
}

function isAmount(value: number | undefined): value is number {
  return typeof value === "number" && value >= 0 && value < Number.POSITIVE_INFINITY;
}
