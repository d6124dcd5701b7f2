/** How much is asked of a holder: a moving average that forgets half of what it knew in `halfLifeMs`. */
export interface Demand {
  readonly perSecond: number;
  /** The moment up to which requests are counted. */
  readonly atMs: number;
}

export const noDemand: Demand = { perSecond: 0, atMs: 0 };

/** A few exchanges: a shift is mostly known when a plan by it can be agreed on. */
export const demandHalfLifeMs = 2_000;
/** Shorter stretches say little: one request in a millisecond is not a thousand a second. */
const leastStretchMs = 1_000;

/** The demand after a stretch in which `cost` was asked for, whether allowed or denied. */
export function observeDemand(
  { perSecond, atMs }: Demand,
  cost: number,
  nowMs: number,
  halfLifeMs: number = demandHalfLifeMs,
): Demand {
  const elapsedMs = Math.max(nowMs - atMs, leastStretchMs);
  const newShare = 1 - 0.5 ** (elapsedMs / halfLifeMs);
  const rate = (cost * 1_000) / elapsedMs;
  return { perSecond: perSecond + newShare * (rate - perSecond), atMs: nowMs };
}
