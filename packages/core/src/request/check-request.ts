import type { Algorithm, FailMode, Window } from "../policy/policy.ts";

/**
 * A limit that a request brings along, for callers whose limits are no policies: those of another protocol. Its counters
 * are named by `name` and kind, so that other numbers under the same name go on with them. Keep the object and hand it over
 * again: what it is compiled to is remembered with it.
 */
export interface GivenLimit {
  readonly name: string;
  /** The dimensions whose values make the subject. */
  readonly by: readonly string[];
  /** Absent: `gcra`. */
  readonly algorithm?: Algorithm | undefined;
  readonly window: Window;
  /** Absent: `open`. */
  readonly onFailure?: FailMode | undefined;
}

/** What a caller asks. Everything is optional but what the policies in force need to tell subjects apart. */
export interface CheckRequest {
  /** Which family of policies is asked. Absent: `default`. */
  readonly domain?: string | undefined;
  /** Who asks for what: `user`, `tenant`, `ip`, `api_key`, `region`, `endpoint`, `method`, `tier`, or the caller's own. */
  readonly dimensions?: Readonly<Record<string, string>> | undefined;
  /**
   * What the request takes: 1 … 100 000. Absent: what the policy's cost map says, else 1. 0 only in a preview; −100 000 … −1
   * only in a charge, which then gives back.
   */
  readonly cost?: number | undefined;
  /** Makes the check repeatable: the same id is charged once. Chosen by the caller, never taken from an end user. */
  readonly id?: string | undefined;
  /** How long the id is remembered, 1 ms … 24 h. Absent: 10 minutes. */
  readonly idTtlMs?: number | undefined;
  /** Ask without taking. */
  readonly preview?: boolean | undefined;
  /** Ask these policies by id, instead of all that match. */
  readonly policies?: readonly string[] | undefined;
  /** Decide by these limits, instead of by policies. */
  readonly limits?: readonly GivenLimit[] | undefined;
  /** How long the caller waits at most, 1 ms … 60 s: shortens what policies say. */
  readonly deadlineMs?: number | undefined;
  /** Also answer for every limit, not only for the one that speaks. */
  readonly details?: boolean | undefined;
  /** With `details`: keep a record of every limit, and answer with it and with every window of the limit. */
  readonly record?: boolean | undefined;
  /** Also answer with a receipt, by which the take can be given back. */
  readonly receipt?: boolean | undefined;
}
