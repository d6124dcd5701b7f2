import type { ResolvedLimit } from "./counter-store.ts";

/** Why a limit is always counted exactly. */
export type NotLeasable =
  /** Its policy says so: `counters: exact` or `strong`, or a `max_overshoot` of 0. */
  | "exact"
  /** A block holds from the moment it begins. */
  | "blockable"
  /** Its policy counts denials across nodes (`count_denials`), and a denial decided on another node is not counted. */
  | "count_denials"
  /** A counter that several limits of a policy charge has no separate ledger. */
  | "shared"
  /** It stands in while counters are unavailable, and is counted on this node anyway. */
  | "local"
  /** A sliding log is chosen to be exact. */
  | "sliding_log"
  /** A new value and one seen before differ in cost, which a lease cannot know. */
  | "distinct"
  /** Lost units of a one-off quota are lost for good. */
  | "one_off";

/** Undefined if the limit may be leased. */
export function whyNotLeasable({ limit, windows }: Pick<ResolvedLimit, "limit" | "windows">): NotLeasable | undefined {
  const { counters, maxOvershoot } = limit.policy;
  if (counters === "exact" || counters === "strong" || maxOvershoot === 0) return "exact";
  if (limit.blockable) return "blockable";
  if (limit.policy.countDenials) return "count_denials";
  if (limit.sharesIdentity) return "shared";
  if (limit.local) return "local";
  for (const { kind, perMs, charges } of windows) {
    if (kind === "log") return "sliding_log";
    if (kind === "distinct") return "distinct";
    if (perMs === Number.POSITIVE_INFINITY) return "one_off";
    if (!charges) return "shared";
  }
  return undefined;
}
