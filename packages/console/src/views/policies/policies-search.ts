import { numberParam, oneOf, type Search, textParam } from "../../url/search-params.ts";

export const policyStates = ["any", "live", "shadow", "rollout", "file", "disabled"] as const;
export type PolicyState = (typeof policyStates)[number];

export interface PoliciesSearch {
  readonly q?: string | undefined;
  readonly owner?: string | undefined;
  readonly state?: PolicyState | undefined;
  readonly sort?: string | undefined;
  /** 1: from the largest. */
  readonly desc?: number | undefined;
}

export function parsePoliciesSearch(search: Search): PoliciesSearch {
  const state = oneOf(search.state, policyStates, "any");
  return {
    q: textParam(search.q),
    owner: textParam(search.owner),
    state: state === "any" ? undefined : state,
    sort: textParam(search.sort, 32),
    desc: numberParam(search.desc, 0, 1),
  };
}
