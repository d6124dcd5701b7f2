/** Whether replaying a recording under its own policies reproduces its decisions. */
export interface IdentityReport {
  /** Decisions that were compared. */
  readonly requests: number;
  readonly agreed: number;
  readonly share: number;
  /** Whether every decision was reproduced. */
  readonly exact: boolean;
  /** Whether nothing is known that would keep a replay from reproducing every decision. */
  readonly expected_exact: boolean;
  /** Why decisions may differ, each with how many of those that differ it is the likeliest reason of. */
  readonly causes: readonly IdentityCause[];
  /** Decisions that were not compared. */
  readonly not_compared: {
    /** Counters were not asked, because they were unavailable. */
    readonly degraded: number;
    /** The kill switch was on. */
    readonly forced: number;
    /** Denied by a limit that the sample does not answer. */
    readonly sampled: number;
  };
  /** The first ones that differ. */
  readonly examples: readonly {
    readonly at_ms: number;
    readonly dimensions: Readonly<Record<string, string>>;
    readonly recorded: string;
    readonly replayed: string;
  }[];
}

export interface IdentityCause {
  readonly cause:
    | "counters_not_empty"
    | "leases"
    | "sampling"
    | "several_nodes"
    | "changed_counters"
    | "degraded"
    | "dropped"
    | "hashed"
    | "own_limits"
    | "exceptions"
    | "cut_off"
    | "memory"
    | "unknown";
  readonly requests: number;
  readonly message: string;
}
