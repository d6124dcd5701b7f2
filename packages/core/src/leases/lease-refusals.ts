import { isLeasable } from "../counters/allowance.ts";
import type { CentralCounters, CounterStore } from "../counters/counter-store.ts";
import { SluiceError } from "../errors.ts";
import { isRefused, type Resolution } from "../match/resolve.ts";

export function grantsLeases(counters: CounterStore): counters is CentralCounters {
  return "lease" in counters;
}

export function notLeasable(why: string): SluiceError {
  return new SluiceError("not_leasable", `such requests cannot be leased: ${why}; call check for each of them`);
}

/**
 * Why a lease holder could not decide such requests as a check would. Settling alone only concerns counters. One unit
 * has to mean the same to every limit, and no policy may need to see single requests.
 */
export function whyNotLeased({ limits, refusals }: Resolution, want: number): string | undefined {
  if (want > 0 && isRefused(refusals)) return "they are denied by name";
  if (limits.length === 0) return "no limit applies to them";
  if (want === 0) return undefined;
  for (const one of limits) {
    const { policy } = one.limit;
    if (one.group !== 0 || policy.trial !== undefined)
      return `policy ${policy.id} is in shadow mode or on trial, and must see each of them`;
    if (one.cost !== limits[0]!.cost) return "they cost one limit more than another";
    if (!isLeasable(one)) return `limit ${one.limit.scope} of policy ${policy.id} has to be asked each time`;
  }
  return refusals.length > 0 ? "a policy in shadow mode must see each of them" : undefined;
}
