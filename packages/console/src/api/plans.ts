import type { PlanBody, PlanChangeBody, PlanSummaryBody } from "@sluice/protocol/admin";
import { queryOptions } from "@tanstack/react-query";
import { askAll, type ChangeOptions } from "./admin.ts";
import { ask, part } from "./ask.ts";

/** The windows of one limit in a plan, as they are sent. */
export interface PlanLimitRequest {
  readonly policy: string;
  readonly limit: string;
  readonly windows: readonly unknown[];
}

const planPath = (name: string) => `plans/${part(name)}`;

export const plansQuery = queryOptions({
  queryKey: ["plans", "list"],
  queryFn: ({ signal }) => askAll<PlanSummaryBody>("plans", {}, { most: 1_000, signal }),
});

export const planQuery = (name: string) =>
  queryOptions({ queryKey: ["plan", name], queryFn: ({ signal }) => ask<PlanBody>("GET", planPath(name), { signal }) });

export const plans = {
  put: (name: string, limits: readonly PlanLimitRequest[], options: ChangeOptions) =>
    ask<PlanChangeBody>("PUT", planPath(name), { body: { limits }, ...options }),
  delete: (name: string, options: ChangeOptions) => ask<PlanChangeBody>("DELETE", planPath(name), options),
} as const;
