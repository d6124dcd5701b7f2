import type { Decision } from "./decision.ts";

/** The largest number of seconds that every HTTP recipient can be expected to hold: 2³¹ − 1. */
const maxSeconds = 2_147_483_647;

/** A wait in whole seconds: rounded up and never 0, so that a client that obeys it is not refused again. */
export function waitSeconds(waitMs: number): number {
  return Math.min(maxSeconds, Math.max(1, Math.ceil(waitMs / 1000)) || 1);
}

/**
 * `Retry-After` in whole seconds. With a random source (0 … 1), jitter is added, so that clients refused together do
 * not come back together: up to 100 % for a second, 10 % for longer waits, and at most 10 s.
 */
export function retryAfterSeconds(retryAfterMs: number, random?: () => number): number {
  const base = waitSeconds(retryAfterMs);
  return withJitter(base, Math.min(Math.max(1, Math.floor(base / 10)), 10), random);
}

/**
 * `Retry-After` while counters are unavailable. How long that lasts is unknown, so clients come back soon and spread
 * out: 1–5 s.
 */
export function outageRetrySeconds(random?: () => number): number {
  return withJitter(waitSeconds(outageRetryMs), 4, random);
}

/** When to ask again while counters are unavailable. */
export const outageRetryMs: number = 1_000;

function withJitter(base: number, mostSeconds: number, random: (() => number) | undefined): number {
  if (random === undefined) return base;
  const jitter = Math.min(mostSeconds, Math.max(0, Math.floor(random() * (mostSeconds + 1))) || 0);
  return Math.min(maxSeconds, base + jitter);
}

/** How long to wait if waiting helps; undefined for an allowance, and for what never passes. */
export function findWaitMs(decision: Decision): number | undefined {
  const { allowed, reason, retryAfterMs } = decision;
  if (allowed || reason === "never_fits" || reason === "deny_list" || reason === "missing_dimension") return undefined;
  return retryAfterMs !== undefined && Number.isFinite(retryAfterMs) ? retryAfterMs : undefined;
}
