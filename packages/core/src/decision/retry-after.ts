import type { Decision } from "./decision.ts";

/** The largest number of seconds that every HTTP recipient can be expected to hold: 2³¹ − 1. */
const maxSeconds = 2_147_483_647;

/**
 * `Retry-After` in whole seconds: rounded up and never 0, so that who obeys it is not refused again. With a random
 * source (0 … 1), jitter is added, so that who was refused together does not come back together:
 * `base + uniform(0, base)`, at most twice the base.
 */
export function retryAfterSeconds(retryAfterMs: number, random?: () => number): number {
  const base = Math.min(maxSeconds, Math.max(1, Math.ceil(retryAfterMs / 1000)) || 1);
  if (random === undefined) return base;
  const jitter = Math.min(base, Math.max(0, Math.floor(random() * (base + 1))) || 0);
  return Math.min(maxSeconds, base + jitter);
}

/** How long to wait where waiting helps: undefined for what is allowed, and for what never passes. */
export function findWaitMs(decision: Decision): number | undefined {
  const { allowed, reason, retryAfterMs } = decision;
  if (allowed || reason === "never_fits" || reason === "deny_list" || reason === "missing_dimension") return undefined;
  return retryAfterMs !== undefined && Number.isFinite(retryAfterMs) ? retryAfterMs : undefined;
}
