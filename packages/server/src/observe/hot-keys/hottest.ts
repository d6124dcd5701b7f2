import type { HotKeyOrder } from "@sluice/protocol/http";
import type { HotKey } from "sluice";

/** The hottest keys, hottest first: by their certain rate, or by their denials if they have any. */
export function hottest<Key extends HotKey>(keys: readonly Key[], by: HotKeyOrder, count: number): readonly Key[] {
  const keyWeight = (key: Key): number => (by === "rate" ? key.perSecond - key.errorPerSecond : key.deniedPerSecond);
  return keys
    .filter((key) => keyWeight(key) > 0)
    .sort((one, other) => keyWeight(other) - keyWeight(one))
    .slice(0, count);
}

/** Adds up keys with the same policy, scope and subject, and counts them. */
export function sumByName(keys: Iterable<HotKey>): readonly SummedHotKey[] {
  const sums = new Map<string, SummedHotKey>();
  for (const key of keys) {
    // A JSON list, because a subject may contain any separator.
    const name = JSON.stringify([key.policy, key.scope, key.subject]);
    const sum = sums.get(name);
    sums.set(name, sum === undefined ? { ...key, parts: 1 } : add(sum, key));
  }
  return [...sums.values()];
}

export interface SummedHotKey extends HotKey {
  readonly parts: number;
}

function add(sum: SummedHotKey, key: HotKey): SummedHotKey {
  return {
    ...sum,
    perSecond: sum.perSecond + key.perSecond,
    deniedPerSecond: sum.deniedPerSecond + key.deniedPerSecond,
    errorPerSecond: sum.errorPerSecond + key.errorPerSecond,
    parts: sum.parts + 1,
  };
}
