import { type Search, textParam } from "../../url/search-params.ts";

export interface PlanSearch {
  /** The plan that is open beneath the table. */
  readonly plan?: string | undefined;
}

export function parsePlanSearch({ plan }: Search): PlanSearch {
  return { plan: textParam(plan, 128) };
}
