import type { Policy } from "sluice";
import type { CompiledLimit } from "sluice/store";
import { compileTestLimit, type TestLimit } from "sluice/testing";

export interface LeasedLimit extends TestLimit {
  /** Absent: 0.01. */
  readonly maxOvershoot?: number;
  /** Absent: `leased`, however low the limit is. */
  readonly counters?: Policy["counters"];
}

/** A limit of a policy that is leased. */
export function leasedLimit({ maxOvershoot = 0.01, counters = "leased", ...limit }: LeasedLimit): CompiledLimit {
  const compiled = compileTestLimit(limit);
  return { ...compiled, policy: { ...compiled.policy, maxOvershoot, counters } };
}
