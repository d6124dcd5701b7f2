import type { PageBody, PolicySummaryBody } from "@sluice/protocol/admin";
import { useQueries } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { ask } from "../../api/ask.ts";

/** As many as the server sends at once. */
const pageSize = 100;

/**
 * Summaries of the policies that were looked at, page by page: those of ten thousand at once would keep the server busy for rows
 * that no reader sees. `ids` are all policies, in the order of the server.
 */
export function useSummaries(ids: readonly string[]) {
  const [pages, setPages] = useState<ReadonlySet<number>>(new Set());
  const places = useMemo(() => new Map(ids.map((id, at) => [id, at])), [ids]);
  const wanted = useMemo(() => [...pages].filter((page) => page * pageSize < ids.length), [pages, ids]);
  const { byId, failed } = useQueries({
    queries: wanted.map((page) => {
      const after = page === 0 ? undefined : ids[page * pageSize - 1];
      return {
        queryKey: ["policies", "summaries", after ?? ""],
        queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
          ask<PageBody<PolicySummaryBody>>("GET", "policy-summaries", { query: { after, limit: pageSize }, signal }),
        staleTime: 60_000,
        refetchInterval: 60_000,
      };
    }),
    combine: collect,
  });
  const show = useCallback(
    (id: string) => {
      const place = places.get(id);
      const page = place === undefined ? undefined : Math.floor(place / pageSize);
      if (page !== undefined) setPages((known) => (known.has(page) ? known : new Set([...known, page])));
    },
    [places],
  );
  return { byId, failed, show };
}

function collect(
  answers: readonly { readonly data: PageBody<PolicySummaryBody> | undefined; readonly isError: boolean }[],
) {
  const summaries = answers.flatMap(({ data }) => data?.items ?? []);
  const byId: ReadonlyMap<string, PolicySummaryBody> = new Map(summaries.map((summary) => [summary.id, summary]));
  return { byId, failed: answers.some(({ isError }) => isError) };
}
