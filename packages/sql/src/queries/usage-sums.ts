import { sql } from "kysely";
import type { UsageCounts, UsageStep } from "../records.ts";

/** What the queries of usage share: how long periods are, and what is summed up in one. */
export const stepSeconds: Readonly<Record<UsageStep, number>> = { minute: 60, hour: 3_600, day: 86_400 };

export const sumColumns = ["decided", "allowed", "denied", "cost", "degraded", "shadow_denied"] as const;

export function findPeriodStart(step: UsageStep, second: number): number {
  return second - (second % stepSeconds[step]);
}

/** A sum as a whole number: PostgreSQL would answer with a decimal one. */
export function total(column: string): ReturnType<typeof sql<number>> {
  return sql<number>`cast(sum(${sql.ref(column)}) as bigint)`;
}

export type UsageColumns = Readonly<Record<(typeof sumColumns)[number], number>>;

export function columnsFromCounts(counts: UsageCounts): UsageColumns {
  const { decided, allowed, denied, cost, degraded, shadowDenied } = counts;
  return { decided, allowed, denied, cost, degraded, shadow_denied: shadowDenied };
}

/** The counts in a row that was selected with `total(column).as(`sum_${column}`)` for each of `sumColumns`. */
export function countsFromRow(row: Readonly<Record<string, unknown>>): UsageCounts {
  const [decided, allowed, denied, cost, degraded, shadowDenied] = sumColumns.map((column) => row[`sum_${column}`]);
  return { decided, allowed, denied, cost, degraded, shadowDenied } as unknown as UsageCounts;
}
