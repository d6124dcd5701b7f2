import type { FoundLimits } from "./limit-finder.ts";
import type { LeftOut } from "./prepare-policies.ts";
import type { Timeline } from "./timeline.ts";

/** What a simulation found, as plain data: what `sluice simulate --json` prints under `result`. */
export interface SimulationReport {
  readonly requests: number;
  /** Epoch milliseconds of the first and the last request; absent if there is none. */
  readonly first_ms?: number;
  readonly last_ms?: number;
  /** Requests that no limiter decides, because a dimension is invalid. They are not among `requests`. */
  readonly invalid: number;
  readonly now: SideReport;
  readonly candidate: SideReport;
  /** How many requests were decided how, now and by the candidate. */
  readonly flips: FlipMatrix;
  readonly policies: readonly PolicyReport[];
  readonly hurt: HurtReport;
  readonly timeline: Timeline;
  /** Limits of the candidate that count all requests together, to be compared with the timeline. */
  readonly limit_lines: readonly LimitLine[];
  readonly peaks: readonly PeakReport[];
  readonly limits?: FoundLimits;
  readonly left_out: readonly LeftOut[];
  /** Requests that lack a dimension which a limit of the candidate counts by. */
  readonly missing: readonly MissingReport[];
  /** Requests whose log has whole seconds. */
  readonly whole_seconds: number;
  /** Live counters that were dropped because memory was full. 0: every decision is exact. */
  readonly counters_lost: number;
  /** What the reader has to know in order to judge the numbers, in sentences. */
  readonly notes: readonly string[];
}

export interface SideReport {
  /** Whether policies decided, or the recording says what was. */
  readonly source: "policies" | "recording";
  readonly allowed: number;
  readonly denied: number;
  readonly denied_share: number;
  /**
   * Of logs with whole seconds: the least and the most denied, over requests spread evenly over their second and all of
   * them at its start. Absent: the log has finer times, or policies did not decide.
   */
  readonly range?: { readonly least_denied: number; readonly most_denied: number };
}

export interface FlipMatrix {
  readonly allowed_allowed: number;
  readonly allowed_denied: number;
  readonly denied_allowed: number;
  readonly denied_denied: number;
}

/** A policy that is in either set; 0 where it is not. */
export interface PolicyReport {
  readonly policy: string;
  /** Requests that its limits counted. */
  readonly requests_now: number;
  readonly denied_now: number;
  readonly requests: number;
  readonly denied: number;
  /** Of the candidate's: what it would have denied if it were not in shadow mode. */
  readonly shadow_denied: number;
}

/** The subjects of requests that are allowed now and that the candidate denies. */
export interface HurtReport {
  readonly subjects: number;
  /** False if there were too many subjects to count them all: then `subjects` is at least as many. */
  readonly exact: boolean;
  /** Those with the most newly denied requests. */
  readonly top: readonly HurtSubject[];
}

export interface HurtSubject {
  readonly policy: string;
  readonly scope: string;
  readonly subject: string;
  readonly requests: number;
  readonly newly_denied: number;
  /** Of all requests of the log. */
  readonly traffic_share: number;
}

export interface LimitLine {
  readonly policy: string;
  readonly scope: string;
  readonly window: string;
  readonly per_second: number;
}

/** How much subjects ask for at most within a window of a limit, and how many ask for more than it allows. */
export interface PeakReport {
  readonly policy: string;
  readonly scope: string;
  readonly window: string;
  readonly limit: number;
  readonly subjects: number;
  readonly subjects_over: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p99_9: number;
  readonly max: number;
  /** 101 values: the peaks that 0 %, 1 %, … 100 % of the subjects do not exceed. */
  readonly curve: readonly number[];
}

export interface MissingReport {
  readonly policy: string;
  readonly dimension: string;
  readonly requests: number;
}
