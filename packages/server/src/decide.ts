import type { CheckRequest, Decision, Hold, ReserveRequest } from "sluice";
import type { TogetherOptions } from "sluice/internal";

/** Decides and counts. Synchronous if counters are in this process: no turn of the event loop is spent. */
export interface Decide {
  /** Throws (or rejects with) `overloaded` if more would pile up, and whatever `Limiter.check` throws. */
  one(request: CheckRequest): Decision | Promise<Decision>;
  /** All of them or none, as `Limiter.checkTogether`. */
  together(
    requests: readonly CheckRequest[],
    options?: TogetherOptions,
  ): readonly Decision[] | Promise<readonly Decision[]>;
  /** Holds an amount, as `Limiter.reserve`, which is counted as a check of that cost. Absent: it is not counted. */
  readonly reserve?: ((request: ReserveRequest) => Promise<Hold>) | undefined;
  /** Checks waiting for counters now. */
  readonly pending: number;
}
