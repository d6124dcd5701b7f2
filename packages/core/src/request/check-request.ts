import type { Algorithm, FailMode, Window } from "../policy/policy.ts";

/**
 * A limit that a request brings along, for callers whose limits are not policies: those of another protocol. Its
 * counters are named by `name` and kind, so that other numbers under the same name continue them. Keep the object and
 * pass it again: its compiled form is remembered with it.
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

/** What a caller asks. Everything is optional, except for the dimensions that the policies in force count by. */
export interface CheckRequest {
  /** Which family of policies is asked. Absent: `default`. */
  readonly domain?: string | undefined;
  /**
   * Who is asking for what: `user`, `tenant`, `ip`, `api_key`, `region`, `endpoint`, `method`, `tier`, or the caller's
   * own.
   */
  readonly dimensions?: Readonly<Record<string, string>> | undefined;
  /**
   * The cost of the request: 1 … 100 000. Absent: that of the policy's cost map, else 1. 0 only in a preview; −100 000
   * … −1 only in a charge, which then gives back.
   */
  readonly cost?: number | undefined;
  /** Makes the check repeatable: the same id is charged once. Chosen by the caller, never by an end user. */
  readonly id?: string | undefined;
  /** How long the id is remembered, 1 ms … 24 h. Absent: 10 minutes. */
  readonly idTtlMs?: number | undefined;
  /** Decide without taking. */
  readonly preview?: boolean | undefined;
  /** Ask these policies by id, instead of all that match. */
  readonly policies?: readonly string[] | undefined;
  /** Decide by these limits instead of policies. */
  readonly limits?: readonly GivenLimit[] | undefined;
  /** How long the caller waits at most, 1 ms … 60 s: can only shorten the policies' deadline. */
  readonly deadlineMs?: number | undefined;
  /** Also answer for every limit, not only for the deciding one. */
  readonly details?: boolean | undefined;
  /** With `details`: record every limit, and answer with its record and all of its windows. */
  readonly record?: boolean | undefined;
  /** Also answer with a receipt, which can be used to give the take back. */
  readonly receipt?: boolean | undefined;
}
