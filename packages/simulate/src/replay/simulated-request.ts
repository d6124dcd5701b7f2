import type { PolicySet } from "sluice";

/** One request of recorded traffic: what a policy may ask about it. */
export interface SimulatedRequest {
  /** Epoch milliseconds. Of a request whose log has whole seconds: the start of its second. */
  readonly timeMs: number;
  /** Whether the log has whole seconds only, so that the request came at some moment of the second after `timeMs`. */
  readonly wholeSecond: boolean;
  readonly dimensions: Readonly<Record<string, string>>;
  /** Absent: as the policies say, else 1. */
  readonly cost?: number | undefined;
  /** Whether it was denied when it was recorded. Undefined: the recording does not say. */
  readonly wasDenied?: boolean | undefined;
  /** The domain that it asked in. Absent: that of the simulation. */
  readonly domain?: string | undefined;
  /** The policies that it named. Absent: all that match. */
  readonly policies?: readonly string[] | undefined;
  /** Requests that were decided with this one, all of them or none; this one is the first. Absent: none. */
  readonly together?: readonly SimulatedRequest[] | undefined;
  /** What a recording of Sluice itself says beyond that. Absent: it comes from a log. */
  readonly recorded?: RecordedMoment | undefined;
}

/** When exactly counters decided, and what. */
export interface RecordedMoment {
  /** Milliseconds by the counters' steady clock, exactly. Undefined: the instant is known to the millisecond only. */
  readonly steadyMs: number | undefined;
  /** Epoch milliseconds of that clock's instant 0. */
  readonly originMs: number;
  /** Its place among the requests of the same instant. */
  readonly order: number;
  readonly decision: RecordedDecision;
  /** The policies in force. */
  readonly policies: PolicySet | undefined;
}

export interface RecordedDecision {
  readonly allowed: boolean;
  readonly reason: string;
  readonly policy: string | undefined;
  readonly scope: string | undefined;
  /** The largest cost that would have passed afterwards. */
  readonly remaining: number | undefined;
}
