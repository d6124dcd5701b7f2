/** What an answer says of one limit. A field that it does not say is absent. */
export interface LimitReading {
  /** What the server calls it: `burst`, `tokens`, `core`. */
  readonly name?: string;
  /** The most that may be used in a window. */
  readonly limit?: number;
  /** What is left. */
  readonly remaining?: number;
  /** How long until there is more, or all of it again: servers mean either. */
  readonly resetAfterMs?: number;
  readonly windowMs?: number;
  /** What is counted, where it is not requests: `tokens`, `content-bytes`, `concurrent-requests`. */
  readonly unit?: string;
}

/** However long a list a server sends, the first ones count. */
export const maxLimits = 32;
