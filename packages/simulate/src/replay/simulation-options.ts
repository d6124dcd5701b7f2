import type { PolicySet } from "sluice";

export interface SimulationOptions {
  /** The policies to try. */
  readonly candidate: PolicySet;
  /** The policies to compare with. Absent: what the recording says, or that everything was allowed. */
  readonly now?: PolicySet | undefined;
  /** The dimensions that the recording carries. Limits by others are left out, and named in the report. */
  readonly carried: readonly string[];
  /** The dimension whose subjects were sampled. Limits that count by others are left out, and named in the report. */
  readonly sampledBy?: string | undefined;
  /** The domain that all requests ask in. Absent: `default`. */
  readonly domain?: string | undefined;
  /** A policy of the candidate whose limits are tried at several sizes, by default a tenth to ten times as large. */
  readonly findLimit?: { readonly policy: string; readonly factors?: readonly number[] | undefined } | undefined;
  /** How many bytes all counters may take. Absent: 512 MiB. */
  readonly maxCounterBytes?: number | undefined;
  /** How many subjects are counted one by one, over all limits. Absent: 500 000. */
  readonly maxSubjects?: number | undefined;
  /** How many buckets the timeline has at most, an even number. Absent: 2 048. */
  readonly maxBuckets?: number | undefined;
}
