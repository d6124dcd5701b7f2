import { toUSVString } from "node:util";
import type { HotKeyOrder } from "@sluice/protocol/http";
import type { HotKey } from "sluice";
import type { HotKeyReport } from "../hot-keys/hot-key-report.ts";
import { hottest, sumByName } from "../hot-keys/hottest.ts";
import type { Family } from "./exposition.ts";
import type { ShowSubject } from "./hide-subjects.ts";

/** Hot keys of this process, and how many of them get a series of their own. */
export interface HotKeyFigures {
  readonly count: number;
  readonly read: () => HotKeyReport;
  readonly show: ShowSubject;
}

/** The only series with labels that come from requests: so many of each family, and only where somebody wants them. */
export function hotKeyFamilies({ count, read, show }: HotKeyFigures): readonly Family[] {
  // What is the same on the page is one series: a page with two of them is refused by some who read it.
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
