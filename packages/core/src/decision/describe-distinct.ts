import { distinctError, exactValues } from "../algorithms/distinct-values.ts";
import type { DistinctCount } from "./decision.ts";

/** What a decision says of a limit on distinct values whose window holds at most `capacity` of them. */
export function describeDistinct(dimension: string, capacity: number): DistinctCount {
  return { dimension, error: capacity <= exactValues ? 0 : distinctError };
}
