import type { SqlCountersStats } from "@sluice/sql/counters";
import { counter, type Family, gauge } from "./exposition.ts";

export type StrongStats = SqlCountersStats;

const breakerValues = { closed: 0, half_open: 0.5, open: 1 } as const;

/** Counters of policies with `counters: strong`, in a database. */
export function strongMetrics(read: () => StrongStats): readonly Family[] {
  return [
    gauge(
      "sluice_strong_breaker_open",
      "0 while the database of strong counters is asked, 1 while its breaker is open, 0.5 while it is probed.",
      () => breakerValues[read().state],
    ),
    gauge("sluice_strong_waiting", "Checks and other calls that wait for a transaction.", () => read().waiting),
    counter("sluice_strong_calls_total", "Checks and other calls that were decided.", () => read().actions),
    counter("sluice_strong_transactions_total", "Transactions that decided them.", () => read().transactions),
    counter("sluice_strong_transaction_seconds_total", "Time that transactions took.", () => read().totalMs / 1_000),
    counter(
      "sluice_strong_conflicts_total",
      "Transactions that were begun again, because another was in the way.",
      () => read().conflicts,
    ),
    counter(
      "sluice_strong_failed_transactions_total",
      "Transactions that failed, or took too long.",
      () => read().failures,
    ),
    counter(
      "sluice_strong_recovered_total",
      "Commits whose answer was lost, and of which it was found out whether they were made.",
      () => read().recovered,
    ),
    counter(
      "sluice_strong_unknown_total",
      "Commits whose answer was lost, and of which that was not found out in time.",
      () => read().unknown,
    ),
    counter("sluice_strong_deleted_rows_total", "Idle rows that this process deleted.", () => read().swept),
  ];
}
