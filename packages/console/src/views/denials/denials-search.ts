import { type Search, textParam } from "../../url/search-params.ts";
import { isTimeRange, type TimeRange } from "../../url/time-range.ts";

export interface DenialsSearch {
  readonly policy?: string | undefined;
  readonly dimension?: string | undefined;
  readonly subject?: string | undefined;
  readonly range?: TimeRange | undefined;
}

export function parseDenialsSearch({ policy, dimension, subject, range }: Search): DenialsSearch {
  return {
    policy: textParam(policy),
    dimension: textParam(dimension),
    subject: textParam(subject),
    range: isTimeRange(range) ? range : undefined,
  };
}
