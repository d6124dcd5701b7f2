/**
 * What a window makes of a cost at an instant: how it stands, how it would stand afterwards, and the state to keep if
 * the cost is taken. Algorithms return one and change nothing; whether it is taken is decided over all windows of a
 * request together.
 */
export interface WindowVerdict {
  /** "No" is an answer and "never" is another. */
  readonly fits: "now" | "later" | "never";
  /** Whole units of cost left as it stands: exactly the largest cost that would pass now. */
  readonly remaining: number;
  /** The same once this cost is taken. */
  readonly remainingAfter: number;
  /** First whole millisecond at which the cost passes if nothing else comes. 0 when now, Infinity when never. */
  readonly retryAfterMs: number;
  /** Whole milliseconds until the counter is as good as new: as it stands, and once the cost is taken. */
  readonly resetAfterMs: number;
  readonly resetAfterTakeMs: number;
  /**
   * First whole millisecond at which more than `remaining` is left if nothing else comes, and the same of `remainingAfter`. Infinity
   * where no more ever comes: the window is full, or does not refill. Where the cost fits later, the first may be `retryAfterMs`.
   */
  readonly moreAfterMs: number;
  readonly moreAfterTakeMs: number;
  /** Cost in the bucket with this request, and how long until it leaks down to it. Bucket algorithms only, else 0. */
  readonly queuePosition: number;
  readonly queueDelayMs: number;
  /** The state once the cost is taken; meaningless unless it fits now. `word0` is when the counter is idle again. */
  readonly word0: number;
  readonly word1: number;
  readonly word2: number;
}

/** One that is written into. */
export type WritableVerdict = { -readonly [Name in keyof WindowVerdict]: WindowVerdict[Name] };

export function createVerdict(): WritableVerdict {
  return {
    fits: "now",
    remaining: 0,
    remainingAfter: 0,
    retryAfterMs: 0,
    resetAfterMs: 0,
    resetAfterTakeMs: 0,
    moreAfterMs: Number.POSITIVE_INFINITY,
    moreAfterTakeMs: Number.POSITIVE_INFINITY,
    queuePosition: 0,
    queueDelayMs: 0,
    word0: 0,
    word1: 0,
    word2: 0,
  };
}
