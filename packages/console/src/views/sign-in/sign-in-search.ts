import { type Search, safeReturnPath, textParam } from "../../url/search-params.ts";

export interface SignInSearch {
  /** The address that needed a session. */
  readonly to?: string | undefined;
}

export function parseSignInSearch(search: Search): SignInSearch {
  return textParam(search.to, 2_048) === undefined ? {} : { to: safeReturnPath(search.to) };
}
