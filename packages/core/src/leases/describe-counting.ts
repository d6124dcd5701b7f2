import { leaseAllowance, leastAllowance } from "../counters/allowance.ts";
import type { CounterStore, ResolvedLimit } from "../counters/counter-store.ts";
import { renderWindow } from "../policy/render-window.ts";
import { renderShare } from "../policy/share-shape.ts";
import { describeNotLeased, findSmallestWindow } from "./describe-not-leased.ts";

/** How a limit's checks are decided in this process, and by how much leases may exceed it. */
export function describeCounting(
  of: Pick<ResolvedLimit, "limit" | "windows">,
  { local, leases = false }: Pick<CounterStore, "local" | "leases">,
): { readonly counted: string; readonly allowance: number } {
  const { counters, maxOvershoot } = of.limit.policy;
  if (counters === "strong") return { counted: "exactly, in the database of strong counters", allowance: 0 };
  const allowance = describeNotLeased(of) === undefined ? leaseAllowance(of) : 0;
  const exactly = local ? "exactly, in memory" : "exactly, at the counters";
  if (!leases) return { counted: exactly, allowance };
  const why = describeNotLeased(of, leastAllowance(counters));
  if (why !== undefined) return { counted: `${exactly}, because it ${why}`, allowance };
  const bound = `at most ${allowance} over ${renderWindow(findSmallestWindow(of)!)} (max_overshoot ${renderShare(maxOvershoot)})`;
  return { counted: `by leases${counters === "auto" ? " while hot" : ""}, ${bound}`, allowance };
}
