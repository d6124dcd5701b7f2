import type { Served } from "./start-served.ts";

/** Checks that a server decided so far, and those of them decided without its counters, because they did not answer in time. */
export interface DegradedCount {
  readonly checks: number;
  readonly degraded: number;
}

export async function countDegraded({ ports }: Pick<Served, "ports">): Promise<DegradedCount> {
  const page = await (await fetch(`http://127.0.0.1:${ports.http}/metrics`)).text();
  const sum = (metric: string): number =>
    [...page.matchAll(new RegExp(`^${metric}(?:\\{.*\\})? (\\S+)$`, "gm"))].reduce(
      (all, [, one]) => all + Number(one),
      0,
    );
  return { checks: sum("sluice_checks_total"), degraded: sum("sluice_degraded_decisions_total") };
}

export function degradedShare(after: DegradedCount, before: DegradedCount = { checks: 0, degraded: 0 }): number {
  return (after.degraded - before.degraded) / (after.checks - before.checks);
}
