import type { Search } from "../../url/search-params.ts";
import { isTimeRange, type TimeRange } from "../../url/time-range.ts";

export interface OverviewSearch {
  readonly range?: TimeRange;
}

export function parseOverviewSearch({ range }: Search): OverviewSearch {
  return isTimeRange(range) ? { range } : {};
}
