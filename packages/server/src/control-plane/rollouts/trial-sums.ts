import type { TallyRecord } from "@sluice/sql";

/** Decisions of some requests, and how many of them were denials. */
export interface Count {
  readonly decided: number;
  readonly denied: number;
}

export const nothing: Count = { decided: 0, denied: 0 };

/** Tallies of all nodes, added up by ring, side and minute. */
export interface TrialSums {
  /** The steps at which rings join, in order. */
  readonly rings: readonly number[];
  at(ring: number, side: TallyRecord["side"], minute: number): Count;
  /** Minutes in which the side decided something for the ring, in order. */
  minutes(ring: number, side: TallyRecord["side"]): readonly number[];
}

/** Adds up the counts of all nodes. */
export function sumTallies(tallies: readonly TallyRecord[]): TrialSums {
  const series = new Map<number, Map<number, { decided: number; denied: number }>>();
  const rings = new Set<number>();
  for (const tally of tallies) {
    if (tally.decided === 0) continue;
    rings.add(tally.step);
    const key = seriesKey(tally.step, tally.side);
    let minutes = series.get(key);
    if (minutes === undefined) {
      minutes = new Map();
      series.set(key, minutes);
    }
    const count = minutes.get(tally.minute);
    if (count === undefined) minutes.set(tally.minute, { decided: tally.decided, denied: tally.denied });
    else {
      count.decided += tally.decided;
      count.denied += tally.denied;
    }
  }
  const ordered = new Map([...series].map(([key, minutes]) => [key, [...minutes.keys()].sort((a, b) => a - b)]));
  return {
    rings: [...rings].sort((a, b) => a - b),
    at: (ring, side, minute) => series.get(seriesKey(ring, side))?.get(minute) ?? nothing,
    minutes: (ring, side) => ordered.get(seriesKey(ring, side)) ?? [],
  };
}

function seriesKey(ring: number, side: TallyRecord["side"]): number {
  return ring * 3 + (side === "old" ? 0 : side === "new" ? 1 : 2);
}

/** The decisions of one side for some rings in some minutes, both ends included. */
export function addCounts(
  sums: TrialSums,
  rings: readonly number[],
  side: TallyRecord["side"],
  from: number,
  to: number,
): Count {
  let decided = 0;
  let denied = 0;
  for (const ring of rings)
    for (let minute = from; minute <= to; minute++) {
      const count = sums.at(ring, side, minute);
      decided += count.decided;
      denied += count.denied;
    }
  return { decided, denied };
}
