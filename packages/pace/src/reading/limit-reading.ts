/** One limit as an answer reports it. Fields it does not report are absent. */
export interface LimitReading {
  /** The server's name for it: `burst`, `tokens`, `core`. */
  readonly name?: string;
  /** The most that may be used in a window. */
  readonly limit?: number;
  /** How much is left. */
  readonly remaining?: number;
  /** How long until there is more, or until all of it is back: servers mean either. */
  readonly resetAfterMs?: number;
  readonly windowMs?: number;
  /** The unit, if not requests: `tokens`, `content-bytes`, `concurrent-requests`. */
  readonly unit?: string;
}

/** Only the first limits of a longer list count. */
export const maxLimits = 32;
