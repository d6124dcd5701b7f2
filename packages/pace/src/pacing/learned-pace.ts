import type { LimitReading } from "../reading/limit-reading.ts";
import type { RateLimitReading } from "../reading/read-rate-limit.ts";

export interface LearnedPaceOptions {
  /** Calls are spread once less than this share of a limit is left. */
  readonly spreadBelow: number;
  /** Calls are never further apart than this by figures alone. */
  readonly maxSpacingMs: number;
}

/**
 * What a caller has been told by answers, and when it may call next by that. Being told to wait stops every call until
 * then. Figures only slow calls down: `remaining` is spread over the time until the reset,
 *
 *     spacing = resetAfter ÷ (remaining + 1)
 *
 * so that the last of them is used just before the reset. Against a limit that refills steadily this settles at its rate
 * with half of it left; against a fixed window it uses the window up exactly. Figures never stop: a server may mean by its
 * reset that everything is there again, long after one call would pass.
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

  /** `othersRunning` are calls under way that the answer may not have counted yet. */
  learn(reading: RateLimitReading, nowMs: number, othersRunning: number): void {
    // A reading may be handed in by hand: what is no number is as good as absent.
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
    // An answer that says nothing leaves what was known.
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

  /** Until when the server wants no call at all. */
  get stopUntilMs(): number {
    return this.#stopUntilMs;
  }

  /** When the next call is due so that what remains lasts. */
  get spacedFromMs(): number {
    const spacingMs = Math.min(this.#options.maxSpacingMs, this.#spacingMs * this.#lastCost);
    return Math.min(this.#spacedUntilMs, this.#lastStartMs + spacingMs);
  }
}

function isAmount(value: number | undefined): value is number {
  return typeof value === "number" && value >= 0 && value < Number.POSITIVE_INFINITY;
}
