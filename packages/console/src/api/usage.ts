import type { TopSubjectsBody } from "@sluice/protocol/admin";
import { queryOptions } from "@tanstack/react-query";
import { admin } from "./admin.ts";
import { ask } from "./ask.ts";

/** A range of periods. The caller gives the bounds, so that a query is asked again when they move. */
export interface UsageRange {
  readonly fromMs: number;
  readonly toMs: number;
  readonly step: "minute" | "hour" | "day";
}

export interface UsageOf {
  readonly policy?: string | undefined;
  readonly limitName?: string | undefined;
  readonly dimension?: string | undefined;
  readonly subject?: string | undefined;
  readonly groupBy?: readonly ("policy" | "limit" | "subject")[] | undefined;
}

export const usageQuery = (range: UsageRange, of: UsageOf = {}) =>
  queryOptions({
    queryKey: ["usage", of, range],
    queryFn: ({ signal }) => admin.usage({ ...range, ...of }, signal),
    // The current minute grows every ten seconds.
    refetchInterval: 10_000,
    placeholderData: (before) => before,
  });

export type SubjectOrder = TopSubjectsBody["by"];

export const topSubjectsQuery = (
  { fromMs, toMs }: UsageRange,
  dimension: string,
  by: SubjectOrder,
  policy?: string | undefined,
) =>
  queryOptions({
    queryKey: ["usage", "top", dimension, by, policy, fromMs, toMs],
    queryFn: ({ signal }) =>
      ask<TopSubjectsBody>("GET", "usage/top", {
        query: { dimension, by, policy, from_ms: fromMs, to_ms: toMs, count: 10 },
        signal,
      }),
    refetchInterval: 30_000,
    placeholderData: (before) => before,
  });
