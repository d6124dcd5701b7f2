import type { BucketLevel } from "@sluice/protocol/ratelimiter";
import type { CheckRequest, Window } from "sluice";
import type { GrpcContext } from "./method.ts";

/** How full every bucket of a key is that can deny it, in the order of its policies. Nothing is taken. */
export async function bucketLevels(
  key: Pick<CheckRequest, "domain" | "dimensions" | "deadlineMs">,
  { limiter }: GrpcContext,
): Promise<BucketLevel[]> {
  const { limits } = await limiter.explain({ ...key, cost: 0, preview: true });
  const enforced = limits.filter(({ shadow }) => !shadow);
  return enforced.flatMap(({ windows }) =>
    windows.map(({ window, remaining }) => ({
      currentLevel: window.capacity - remaining,
      flowRate: flowPerSecond(window.source),
      burstCapacity: Math.floor(window.capacity),
      remainingCapacity: remaining,
    })),
  );
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
