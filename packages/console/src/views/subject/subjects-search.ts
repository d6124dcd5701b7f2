import { type Search, textParam } from "../../url/search-params.ts";

export interface SubjectsSearch {
  readonly q?: string | undefined;
  readonly dimension?: string | undefined;
}

export function parseSubjectsSearch({ q, dimension }: Search): SubjectsSearch {
  return { q: textParam(q), dimension: textParam(dimension) };
}
