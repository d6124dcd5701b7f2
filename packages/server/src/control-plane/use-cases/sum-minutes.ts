import type { TallyRecord } from "@sluice/sql";
import type { MinuteCount, RolloutMinute } from "../rollout-control.ts";

const minuteMs = 60_000;

/** Adds up what nodes counted for the rings of a rollout, minute by minute, in the order of time. */
export function sumMinutes(tallies: readonly TallyRecord[]): readonly RolloutMinute[] {
  const minutes = new Map<number, Partial<Record<TallyRecord["side"], MinuteCount>>>();
  for (const { minute, side, decided, denied } of tallies) {
    const sides = minutes.get(minute) ?? {};
    const before = sides[side] ?? { decided: 0, denied: 0 };
    sides[side] = { decided: before.decided + decided, denied: before.denied + denied };
    minutes.set(minute, sides);
  }
  return [...minutes]
    .sort(([one], [other]) => one - other)
    .map(([minute, { old, new: fresh, shadow }]) => ({ startMs: minute * minuteMs, old, new: fresh, shadow }));
}
