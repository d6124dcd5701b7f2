import { toUSVString } from "node:util";
import type { HotKeyOrder } from "@sluice/protocol/http";
import type { HotKey } from "sluice";
import type { HotKeyReport } from "../hot-keys/hot-key-report.ts";
import { hottest, sumByName } from "../hot-keys/hottest.ts";
import type { Family } from "./exposition.ts";
import type { ShowSubject } from "./hide-subjects.ts";

/** Hot keys of this process, and how many of them get a separate series. */
export interface HotKeyMetricsOptions {
  readonly count: number;
  readonly read: () => HotKeyReport;
  readonly show: ShowSubject;
}

/**
 * The only series with labels that come from requests: at most `count` per metric, and only if settings ask for them.
 */
export function hotKeyMetrics({ count, read, show }: HotKeyMetricsOptions): readonly Family[] {
  // Keys that look the same become one series: some readers reject a page with duplicates.
  const shown = (): readonly HotKey[] =>
    sumByName(read().keys.map((key) => ({ ...key, subject: toUSVString(show(key.subject)) })));
  const family = (name: string, help: string, by: HotKeyOrder, value: (key: HotKey) => number): Family => ({
    name,
    help,
    type: "gauge",
    labels: ["policy", "scope", "subject"],
    samples: () =>
      hottest(shown(), by, count).map((key) => ({
        labels: [key.policy, key.scope, key.subject],
        value: value(key),
      })),
  });
  return [
    family(
      "sluice_hot_key_decisions_per_second",
      "Decisions about the counters that are asked for most.",
      "rate",
      ({ perSecond }) => perSecond,
    ),
    family(
      "sluice_hot_key_denials_per_second",
      "Denials of the counters that are denied most.",
      "denials",
      ({ deniedPerSecond }) => deniedPerSecond,
    ),
  ];
}
