import type { BucketLevel } from "@sluice/protocol/ratelimiter";
import type { Decision, Window, WindowReading } from "sluice";

/** How full every bucket is that can deny, in the order of its policies, as one moment of the counters found them. */
export function bucketLevels({ limits = [] }: Pick<Decision, "limits">): BucketLevel[] {
  const enforced = limits.filter(({ shadow }) => !shadow);
  return enforced.flatMap(({ record }) =>
    (record?.windows ?? []).map((reading) => {
      const { window } = reading;
      const currentLevel = levelOf(reading);
      return {
        currentLevel,
        flowRate: flowPerSecond(window.source),
        burstCapacity: Math.floor(window.capacity),
        remainingCapacity: toMillionths(window.capacity - currentLevel),
      };
    }),
  );
}

/** What is in a bucket, as the counters keep it: with its fractions, and above the capacity where there is debt. */
function levelOf({ window, state, remaining }: WindowReading): number {
  const { capacity, perMs, source } = window;
  switch (window.kind) {
    case "arrival":
      return toMillionths(((state.aheadMs ?? 0) * source.limit) / perMs);
    case "count":
      return state.count ?? 0;
    case "sliding":
      return toMillionths((state.current ?? 0) + ((state.previous ?? 0) * (state.untilEndMs ?? 0)) / perMs);
    case "log":
      return capacity - remaining;
  }
}

/** What is finer comes of counting time in steps of a nanosecond: five taken at 2.78/s would be 5.000000002. */
function toMillionths(level: number): number {
  return Math.round(level * 1e6) / 1e6;
}

const dayMs = 24 * 60 * 60 * 1_000;
const calendarMs = { day: dayMs, month: 30 * dayMs } as const;

/** What flows off in a second, on average; 0 where nothing does. */
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
