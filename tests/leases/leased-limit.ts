import type { CompiledLimit, Policy } from "sluice";
import { compileTestLimit, type TestLimit } from "sluice/testing";

export interface LeasedLimit extends TestLimit {
  /** Absent: 0.01. */
  readonly maxOvershoot?: number;
  /** Absent: `leased`, however little is asked. */
  readonly counters?: Policy["counters"];
}

/** A limit of a policy that is leased. */
export function leasedLimit({ maxOvershoot = 0.01, counters = "leased", ...limit }: LeasedLimit): CompiledLimit {
  const compiled = compileTestLimit(limit);
  return { ...compiled, policy: { ...compiled.policy, maxOvershoot, counters } };
}
