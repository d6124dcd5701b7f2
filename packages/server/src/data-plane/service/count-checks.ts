import type { CheckRequest } from "sluice";
import type { TogetherOptions } from "sluice/internal";
import type { Decide } from "../../decide.ts";
import type { Count } from "../../observe/telemetry/tally.ts";

/** The same decisions, counted as they are asked for, for one protocol. */
export function countChecks(decide: Decide, count: Count): Decide {
  return {
    one(request: CheckRequest) {
      count.count += 1;
      return decide.one(request);
    },
    together(requests: readonly CheckRequest[], options?: TogetherOptions) {
      count.count += requests.length;
      return decide.together(requests, options);
    },
    get pending(): number {
      return decide.pending;
    },
  };
}
