import type { CheckRequest, Decision } from "sluice";
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
  /** Checks waiting for counters now. */
  readonly pending: number;
}
