import type { BucketLevel } from "@sluice/protocol/ratelimiter";
import type { Decision, Window } from "sluice";
import type { WindowReading } from "sluice/store";

/** The level of every bucket that can deny, in the order of its policies, at one moment. */
export function bucketLevels({ limits = [] }: Pick<Decision, "limits">): BucketLevel[] {
  const enforced = limits.filter(({ shadow }) => !shadow);
  return enforced.flatMap(({ record }) =>
    (record?.windows ?? []).map((reading) => {
      const { window } = reading;
      const currentLevel = findLevel(reading);
      return {
        currentLevel,
        flowRate: flowPerSecond(window.source),
        burstCapacity: Math.floor(window.capacity),
        remainingCapacity: toMillionths(window.capacity - currentLevel),
      };
    }),
  );
}

/** The content of a bucket, as the counters have it: with fractions, and above the capacity in case of debt. */
function findLevel({ window, state, remaining }: WindowReading): number {
  const { capacity, perMs, source } = window;
  switch (window.kind) {
    case "arrival":
      return toMillionths(((state.aheadMs ?? 0) * source.limit) / perMs);
    case "count":
      return state.count ?? 0;
    case "sliding":
      return toMillionths((state.current ?? 0) + ((state.previous ?? 0) * (state.untilEndMs ?? 0)) / perMs);
    case "log":
    case "distinct":
      return capacity - remaining;
  }
}

/** Finer digits come from counting time in nanoseconds: five taken at 2.78/s would be 5.000000002. */
function toMillionths(level: number): number {
  return Math.round(level * 1e6) / 1e6;
}

const dayMs = 24 * 60 * 60 * 1_000;
const calendarMs = { day: dayMs, month: 30 * dayMs } as const;

/** The average outflow per second; 0 if there is none. */
export function flowPerSecond({ limit, per }: Window): number {
  switch (per.kind) {
    case "ms":
      return (limit * 1_000) / per.ms;
    case "calendar":
      return (limit * 1_000) / calendarMs[per.unit];
    case "never":
      return 0;
  }
}
