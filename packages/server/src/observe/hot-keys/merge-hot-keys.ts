import { type HotKeyOrder, usualHotKeys } from "@sluice/protocol/http";
import type { HotKeyTotals } from "sluice/internal";
import type { HotKeyReport } from "./hot-key-report.ts";
import { hottest, type SummedHotKey, sumByName } from "./hottest.ts";

/** A report, and its node. */
export interface NodeHotKeys {
  readonly node: { readonly id: string; readonly name: string };
  /** How long ago. */
  readonly ageMs: number;
  readonly report: HotKeyReport;
}

/** The reports of several nodes, merged. `parts` of a key is how many of them list it. */
export interface MergedHotKeys {
  readonly by: HotKeyOrder;
  /** Hottest first. */
  readonly keys: readonly SummedHotKey[];
  readonly totals: HotKeyTotals;
  /** How many nodes reported, and how old the oldest report is. */
  readonly reported: number;
  readonly oldestMs: number;
}

export interface HotKeysRequest {
  /** Absent: `rate`. */
  readonly by?: HotKeyOrder | undefined;
  /** 1 … 100; absent: 20. */
  readonly count?: number | undefined;
}

/**
 * Adds up rates, errors and totals. A key that is not among a node's hottest is missing from that node's report, so a
 * key that few nodes list may be hotter than its sum: on each of the others, by less than the least that node lists.
 */
export function mergeHotKeys(
  reports: readonly NodeHotKeys[],
  { by = "rate", count = usualHotKeys }: HotKeysRequest = {},
): MergedHotKeys {
  const keys = sumByName(reports.flatMap(({ report }) => report.keys));
  const sum = (read: (totals: HotKeyTotals) => number): number =>
    reports.reduce((total, { report }) => total + read(report.totals), 0);
  return {
    by,
    keys: hottest(keys, by, count),
    totals: {
      perSecond: sum(({ perSecond }) => perSecond),
      deniedPerSecond: sum(({ deniedPerSecond }) => deniedPerSecond),
    },
    reported: reports.length,
    oldestMs: reports.reduce((oldest, { ageMs }) => Math.max(oldest, ageMs), 0),
  };
}
