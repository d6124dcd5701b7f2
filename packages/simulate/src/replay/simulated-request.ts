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
}
