import { leaseAllowance } from "../counters/allowance.ts";
import type { ResolvedLimit } from "../counters/counter-store.ts";
import { whyNotLeasable } from "../counters/why-not-leasable.ts";
import { renderWindow } from "../policy/render-window.ts";
import { renderShare } from "../policy/share-shape.ts";

type Of = Pick<ResolvedLimit, "limit" | "windows">;

/**
 * Why a limit is not leased, completing `the limit …`; undefined if it may be. `least` is the smallest lease worth its
 * call.
 */
export function describeNotLeased(of: Of, least = 1): string | undefined {
  const { counters, maxOvershoot } = of.limit.policy;
  switch (whyNotLeasable(of)) {
    case "exact":
      return `is of a policy with ${counters === "exact" || counters === "strong" ? `counters: ${counters}` : "max_overshoot: 0"}`;
    case "blockable":
      return "can be blocked, and a block takes effect at once on every node";
    case "count_denials":
      return "is of a policy with count_denials, and a denial by a node alone would not be counted";
    case "shared":
      return "may share its counter with another limit of the policy; give it a name";
    case "local":
      return "is one of the local limits, which every node counts separately";
    case "sliding_log":
      return "is a sliding_log, which is chosen to be exact";
    case "distinct":
      return "counts distinct values, and only the counters know which of them were seen";
    case "one_off":
      return "is a one-off quota, and what a node loses of it is lost for good";
    case undefined: {
      if (leaseAllowance(of) >= least) return undefined;
      const window = findSmallestWindow(of);
      return window === undefined
        ? "has no windows"
        : `is too small: ${renderShare(maxOvershoot)} of ${renderWindow(window)} is less than ${least}`;
    }
  }
}

/** The window that bounds how much may be leased. */
export function findSmallestWindow({
  windows,
}: Pick<ResolvedLimit, "windows">): ResolvedLimit["windows"][number]["source"] | undefined {
  return windows.map(({ source }) => source).toSorted((a, b) => a.limit - b.limit)[0];
}
