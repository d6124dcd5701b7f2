import { numberParam, oneOf, type Search } from "../../url/search-params.ts";
import { isTimeRange, type TimeRange } from "../../url/time-range.ts";

export const policyTabs = ["usage", "definition", "versions", "audit"] as const;
export type PolicyTab = (typeof policyTabs)[number];

export interface PolicySearch {
  readonly tab?: PolicyTab | undefined;
  readonly range?: TimeRange | undefined;
  /** Versions to compare. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

export function parsePolicySearch(search: Search): PolicySearch {
  const tab = oneOf(search.tab, policyTabs, "usage");
  return {
    tab: tab === "usage" ? undefined : tab,
    range: isTimeRange(search.range) ? search.range : undefined,
    from: numberParam(search.from, 1, 1e9),
    to: numberParam(search.to, 1, 1e9),
  };
}
