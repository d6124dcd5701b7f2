import type { Decision } from "./decision.ts";

/** The largest number of seconds that every HTTP recipient can be expected to hold: 2³¹ − 1. */
const maxSeconds = 2_147_483_647;

/** A wait in whole seconds: rounded up and never 0, so that a client that obeys it is not refused again. */
export function waitSeconds(waitMs: number): number {
  return Math.min(maxSeconds, Math.max(1, Math.ceil(waitMs / 1000)) || 1);
}

/**
 * `Retry-After` in whole seconds. With a random source (0 … 1), jitter is added, so that clients that were refused together do not
 * come back together: as much again for a second, a tenth of longer waits, and 10 s at most.
 */
export function retryAfterSeconds(retryAfterMs: number, random?: () => number): number {
  const base = waitSeconds(retryAfterMs);
  return withJitter(base, Math.min(Math.max(1, Math.floor(base / 10)), 10), random);
}

/** `Retry-After` while counters cannot be asked. How long that lasts is unknown, so clients come back soon and spread out: 1–5 s. */
export function outageRetrySeconds(random?: () => number): number {
  return withJitter(waitSeconds(outageRetryMs), 4, random);
}

/** When it is worth asking again while counters cannot be asked. */
export const outageRetryMs: number = 1_000;

function withJitter(base: number, mostSeconds: number, random: (() => number) | undefined): number {
  if (random === undefined) return base;
  const jitter = Math.min(mostSeconds, Math.max(0, Math.floor(random() * (mostSeconds + 1))) || 0);
  return Math.min(maxSeconds, base + jitter);
}

/** How long to wait where waiting helps: undefined for what is allowed, and for what never passes. */
export function findWaitMs(decision: Decision): number | undefined {
  const { allowed, reason, retryAfterMs } = decision;
  if (allowed || reason === "never_fits" || reason === "deny_list" || reason === "missing_dimension") return undefined;
  return retryAfterMs !== undefined && Number.isFinite(retryAfterMs) ? retryAfterMs : undefined;
}
