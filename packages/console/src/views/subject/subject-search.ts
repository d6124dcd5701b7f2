import type { Search } from "../../url/search-params.ts";
import { isTimeRange, type TimeRange } from "../../url/time-range.ts";

export interface SubjectSearch {
  readonly range?: TimeRange | undefined;
}

export function parseSubjectSearch({ range }: Search): SubjectSearch {
  return { range: isTimeRange(range) ? range : undefined };
}
