import { type Search, textParam } from "../../url/search-params.ts";

export interface WhySearch {
  /** The request, as pairs: `tenant=acme endpoint=/v1/search`. */
  readonly request?: string | undefined;
}

export function parseWhySearch({ request }: Search): WhySearch {
  return { request: textParam(request, 4_096) };
}
