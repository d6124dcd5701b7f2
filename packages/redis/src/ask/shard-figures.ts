/** Upper bounds of the buckets of call durations, in milliseconds; longer calls come last. */
export const callBoundsMs: readonly number[] = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2000];

/** Why calls fail. */
export const callFailures = [
  /** The caller no longer waits for the answer. */
  "timeout",
  /** The same, because this process did not run: that says nothing about the server. */
  "starved",
  /** The connection was lost during the call, or there was none. */
  "connection",
  /** The server wants another user or password, or the user may not do this. */
  "access",
  /** The server is loading its data, is not a primary, or its cluster is incomplete. */
  "passing",
  /** The server has no memory left. */
  "memory",
  /** The script failed, or was stopped. */
  "script",
  /** The reply could not be decoded, or was an error of another kind. */
  "reply",
] as const;
export type CallFailure = (typeof callFailures)[number];

/** Counts of the calls to one server, which only grow, and its latest round trip. */
export interface ShardFigures {
  calls: number;
  failures: Record<CallFailure, number>;
  /** How many answered calls fell into each bucket of `callBoundsMs`, and how many took longer. */
  readonly durations: Float64Array;
  durationsSumMs: number;
  /** How often its breaker opened, and how often it closed again. */
  breakerOpened: number;
  breakerClosed: number;
  /** How long the last exchange took; undefined before the first. */
  roundTripMs: number | undefined;
}

export function createShardFigures(): ShardFigures {
  return {
    calls: 0,
    failures: { timeout: 0, starved: 0, connection: 0, access: 0, passing: 0, memory: 0, script: 0, reply: 0 },
    durations: new Float64Array(callBoundsMs.length + 1),
    durationsSumMs: 0,
    breakerOpened: 0,
    breakerClosed: 0,
    roundTripMs: undefined,
  };
}

/** A call was answered. */
export function countAnswer(figures: ShardFigures, tookMs: number): void {
  let bucket = 0;
  while (bucket < callBoundsMs.length && tookMs > callBoundsMs[bucket]!) bucket += 1;
  figures.durations[bucket]! += 1;
  figures.durationsSumMs += tookMs;
  figures.roundTripMs = tookMs;
}

const failuresByCode: readonly (readonly [RegExp, CallFailure])[] = [
  [/^(NOAUTH|WRONGPASS|NOPERM|DENIED)\b/, "access"],
  [/^(CLUSTERDOWN|LOADING|READONLY|MASTERDOWN|NOREPLICAS|MISCONF|TRYAGAIN|MOVED|ASK)\b/, "passing"],
  [/^OOM\b/, "memory"],
  [/^(BUSY|NOSCRIPT|UNKILLABLE)\b|^ERR.*(user_script|script|Lua)/i, "script"],
  [/^[A-Z]{2,} |^a script answered /, "reply"],
];

/** Classifies the error of a call. A message that does not begin with a server's code came from the connection. */
export function findCallFailure(error: unknown): CallFailure {
  // A reply that cannot be decoded did not come from the connection.
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) return "reply";
  return failuresByCode.find(([pattern]) => pattern.test(error.message))?.[1] ?? "connection";
}
