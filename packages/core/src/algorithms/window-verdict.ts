/**
 * How a window judges a cost at an instant: its state now and afterwards, and what to store if the cost is taken.
 * Algorithms return one and change nothing; whether it is taken is decided over all windows of a request together.
 */
export interface WindowVerdict {
  /** "No" is an answer and "never" is another. */
  readonly fits: "now" | "later" | "never";
  /** Whole units of cost left now: exactly the largest cost that would pass. */
  readonly remaining: number;
  /** The same after this cost is taken. */
  readonly remainingAfter: number;
  /** The first whole millisecond at which the cost passes if no other request comes. 0 if now, Infinity if never. */
  readonly retryAfterMs: number;
  /** Whole milliseconds until the counter is as good as new: as it stands, and after the cost is taken. */
  readonly resetAfterMs: number;
  readonly resetAfterTakeMs: number;
  /**
   * The first whole millisecond at which more than `remaining` is left if no other request comes, and the same for
   * `remainingAfter`. Infinity if that never happens: the window is full, or does not refill. If the cost fits later,
   * the first may be `retryAfterMs`.
   */
  readonly moreAfterMs: number;
  readonly moreAfterTakeMs: number;
  /** Cost in the bucket including this request, and how long until that has leaked. 0 except for bucket algorithms. */
  readonly queuePosition: number;
  readonly queueDelayMs: number;
  /** The state after the cost is taken; meaningless unless it fits now. `word0` is when the counter is idle again. */
  readonly word0: number;
  readonly word1: number;
  readonly word2: number;
}

/** A verdict that can be overwritten. */
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
