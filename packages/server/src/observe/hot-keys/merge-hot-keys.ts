import type { HotKeyOrder } from "@sluice/protocol/http";
import type { HotKeyTotals } from "sluice";
import type { HotKeyReport } from "./hot-key-report.ts";
import { hottest, type SummedHotKey, sumByName } from "./hottest.ts";

/** A report, and who told it. */
export interface ToldHotKeys {
  readonly node: { readonly id: string; readonly name: string };
  /** How long ago. */
  readonly ageMs: number;
  readonly report: HotKeyReport;
}

/** What several nodes told, as one. `parts` of a key is how many of them tell of it. */
export interface MergedHotKeys {
  readonly by: HotKeyOrder;
  /** Hottest first. */
  readonly keys: readonly SummedHotKey[];
  readonly totals: HotKeyTotals;
  /** How many nodes told, and how old the oldest of that is. */
  readonly told: number;
  readonly oldestMs: number;
}

export interface HotKeysWish {
  /** Absent: `rate`. */
  readonly by?: HotKeyOrder | undefined;
  /** 1 … 100; absent: 20. */
  readonly count?: number | undefined;
}

export const usualHotKeys = 20;
export const mostHotKeys = 100;

/**
 * Rates, errors and totals are added up. What a node does not tell of, because it is not among its hottest, is missing from a sum;
 * so a key that few nodes tell of may be hotter than it seems, by less on each of the others than the least that they tell of.
 */
export function mergeHotKeys(
  told: readonly ToldHotKeys[],
  { by = "rate", count = usualHotKeys }: HotKeysWish = {},
): MergedHotKeys {
  const keys = sumByName(told.flatMap(({ report }) => report.keys));
  const sum = (read: (totals: HotKeyTotals) => number): number =>
    told.reduce((total, { report }) => total + read(report.totals), 0);
  return {
    by,
    keys: hottest(keys, by, count),
    totals: {
      perSecond: sum(({ perSecond }) => perSecond),
      deniedPerSecond: sum(({ deniedPerSecond }) => deniedPerSecond),
    },
    told: told.length,
    oldestMs: told.reduce((oldest, { ageMs }) => Math.max(oldest, ageMs), 0),
  };
}
