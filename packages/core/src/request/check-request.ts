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
  /** Also answer for every limit, not only for the one that speaks. */
  readonly details?: boolean | undefined;
  /** Also answer with a receipt, by which the take can be given back. */
  readonly receipt?: boolean | undefined;
}

export const maxCost = 100_000;
/** How long a subject may be blocked for at most. */
export const maxBlockMs: number = 30 * 24 * 60 * 60 * 1000;
export const maxDimensions = 32;
export const maxDimensionLength = 4096;
export const maxIdLength = 256;
export const maxIdTtlMs: number = 24 * 60 * 60 * 1000;
export const maxNamedPolicies = 32;
