import type { HotKey, HotKeys } from "sluice";
import type { HotKeyTotals } from "sluice/internal";
import { hottest, sumByName } from "./hottest.ts";

/** The counters of one process that are asked for or denied most. */
export interface HotKeyReport {
  /** Each policy, scope and subject once, in no order. */
  readonly keys: readonly HotKey[];
  readonly totals: HotKeyTotals;
}

/** More than the sketch has names. */
const everyName = 1_000;

/** The top `count` by rate, and the top `count` by denials. */
export function reportHotKeys(hotKeys: Pick<HotKeys, "top" | "totals">, count: number): HotKeyReport {
  // Several counters have the same name if long subjects were cut, or a version of the policy is on trial.
  const keys = sumByName(hotKeys.top({ by: "rate", count: everyName }));
  const chosen = new Set([...hottest(keys, "rate", count), ...hottest(keys, "denials", count)]);
  return { keys: [...chosen], totals: hotKeys.totals() };
}

/**
 * A report as plain data: lists in place of objects, because it travels every few seconds.
 *
 *     { totals: [per second, denied], keys: [[policy, scope, subject, per second, denied, error], …] }
 */
export function encodeReport({ keys, totals }: HotKeyReport): unknown {
  return {
    totals: [rounded(totals.perSecond), rounded(totals.deniedPerSecond)],
    keys: keys.map((key) => [
      ...[key.policy, key.scope, key.subject],
      ...[rounded(key.perSecond), rounded(key.deniedPerSecond), rounded(key.errorPerSecond)],
    ]),
  };
}

/**
 * Undefined if it is not a report, such as one from a node of another version. Entries that are not keys are left out.
 */
export function decodeReport(value: unknown): HotKeyReport | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { totals, keys } = value as { readonly totals?: unknown; readonly keys?: unknown };
  if (!Array.isArray(totals) || !Array.isArray(keys)) return undefined;
  const [perSecond, deniedPerSecond] = totals as readonly unknown[];
  if (!isRate(perSecond) || !isRate(deniedPerSecond)) return undefined;
  return { keys: keys.flatMap(decodeKey), totals: { perSecond, deniedPerSecond } };
}

function decodeKey(value: unknown): readonly HotKey[] {
  if (!Array.isArray(value)) return [];
  const [policy, scope, subject, perSecond, deniedPerSecond, errorPerSecond] = value as readonly unknown[];
  if (typeof policy !== "string" || typeof scope !== "string" || typeof subject !== "string") return [];
  if (!isRate(perSecond) || !isRate(deniedPerSecond) || !isRate(errorPerSecond)) return [];
  return [{ policy, scope, subject, perSecond, deniedPerSecond, errorPerSecond }];
}

function isRate(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** To a hundredth. */
function rounded(perSecond: number): number {
  return Math.round(perSecond * 100) / 100;
}
