import type { CheckRequest, Decision, TogetherOptions } from "sluice";

/** Decides and counts. Answers at once where counters are in this process: no turn of the event loop is spent. */
export interface Decide {
  /** Throws (or rejects with) `overloaded` where more would pile up, and what `Limiter.check` throws. */
  one(request: CheckRequest): Decision | Promise<Decision>;
  /** All of them or none, as `Limiter.checkTogether`. */
  together(
    requests: readonly CheckRequest[],
    options?: TogetherOptions,
  ): readonly Decision[] | Promise<readonly Decision[]>;
  /** Checks that wait for counters now. */
  readonly pending: number;
}
