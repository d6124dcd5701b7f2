import type { HotKeyOrder } from "@sluice/protocol/http";
import type { HotKey } from "sluice";

/** The hottest of them, hottest first: by what is surely theirs, or by their denials, of which each has some. */
export function hottest<Key extends HotKey>(keys: readonly Key[], by: HotKeyOrder, count: number): readonly Key[] {
  const weightOf = (key: Key): number => (by === "rate" ? key.perSecond - key.errorPerSecond : key.deniedPerSecond);
  return keys
    .filter((key) => weightOf(key) > 0)
    .sort((one, other) => weightOf(other) - weightOf(one))
    .slice(0, count);
}

/** Adds up what has the same policy, scope and subject, each with of how many it is the sum. */
export function sumByName(keys: Iterable<HotKey>): readonly SummedHotKey[] {
  const sums = new Map<string, SummedHotKey>();
  for (const key of keys) {
    // As a list in JSON, because a subject may hold whatever separates.
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
