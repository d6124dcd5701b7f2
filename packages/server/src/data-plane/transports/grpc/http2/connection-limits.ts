/** Times and counts that bound one connection. All times are in milliseconds. */
export interface ConnectionLimits {
  /** Calls that may be open at once. */
  readonly maxConcurrentStreams: number;
  /** How long the first frames of a client, and its answer to our settings, may take. */
  readonly helloWithinMs: number;
  /** How long a connection may be silent before it is asked whether it is there, and how long it may take to say so. */
  readonly silentMs: number;
  readonly replyMs: number;
  /** How long a connection may have no calls. */
  readonly idleMs: number;
  /** How old a connection may become before its client is asked to open another. `Infinity`: any age. */
  readonly maxAgeMs: number;
  /** How long a client may leave answers unread, without taking any part of them. */
  readonly unreadMs: number;
  /** How long a client has to notice GOAWAY, before no more of its calls are taken. */
  readonly lastCallsMs: number;
  /** How long a client has to read the last words of a connection, and to close its end. */
  readonly lingerMs: number;
}

export const defaultLimits: ConnectionLimits = {
  maxConcurrentStreams: 5_000,
  helloWithinMs: 10_000,
  silentMs: 60_000,
  replyMs: 20_000,
  idleMs: 30 * 60_000,
  maxAgeMs: Number.POSITIVE_INFINITY,
  unreadMs: 60_000,
  lastCallsMs: 1_000,
  lingerMs: 1_000,
};

/**
 * Budgets of one connection for what brings no answer; one that is used up closes the connection with
 * ENHANCE_YOUR_CALM.
 */
export const budgets = {
  /** PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty DATA and unknown frames; calls above `maxConcurrentStreams`, and after the last GOAWAY. */
  noise: { burst: 10_000, perSecond: 1_000 },
  /**
   * Calls that the client cancels. While counters are stalled, Envoy cancels every call after 20 ms, and a connection above this
   * bound loses its healthy calls too. So each answer adds one, and a client that was served before a stall has all of it.
   */
  resets: { burst: 100_000, perSecond: 20_000 },
  /** Streams that we reset because the client broke a rule. Correct clients cause none. */
  mistakes: { burst: 100, perSecond: 10 },
} as const;

/** What each answer adds to the budget for noise: clients acknowledge what they read. */
export const noiseEarned = 4;
