/** A holder among those that divide a limit. */
export interface Asking {
  readonly id: string;
  /** Cost per second that it is asked for. */
  readonly demand: number;
}

export interface Share {
  /** Cost per second that may pass in the long run. */
  readonly rate: number;
  /** Whole cost that may pass at once. */
  readonly burst: number;
}

export const noShare: Share = { rate: 0, burst: 0 };

/** A holder is given more than it was asked for lately, because demand is only an average. */
const headroom = 1.2;
/** The part of an equal share that every holder has, so that a first request finds room. */
const floorShare = 0.05;

/**
 * Divides a rate by demand: every holder has its floor, then demands are filled up from the smallest one, as water fills
 * vessels, and what is left is for all alike. The same for the same input, in whatever order, and never more than `rate`
 * together.
 */
export function fillRates(rate: number, asking: readonly Asking[]): ReadonlyMap<string, number> {
  const count = asking.length;
  if (count === 0) return new Map();
  const floor = (rate / count) * floorShare;
  // The smallest first: each may have an equal part of what is left, and leaves what it does not need to the others.
  const ordered = asking.toSorted((one, other) => one.demand - other.demand || compareIds(one.id, other.id));
  const rates = new Map<string, number>();
  let left = rate - floor * count;
  for (const [index, { id, demand }] of ordered.entries()) {
    // More than there is cannot be given, and would only be forgotten later.
    const wanted = Math.max(Math.min(demand, rate) * headroom - floor, 0);
    const given = Math.min(wanted, left / (count - index));
    rates.set(id, floor + given);
    left -= given;
  }
  const surplus = Math.max(left, 0) / count;
  for (const [id, given] of rates) rates.set(id, given + surplus);
  return withinSum(rate, rates);
}

/** Rounding must not add up to more than there is. */
function withinSum(rate: number, rates: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  let sum = 0;
  for (const one of rates.values()) sum += one;
  if (sum <= rate) return rates;
  const scale = (rate / sum) * (1 - 1e-12);
  return new Map([...rates].map(([id, one]) => [id, one * scale]));
}

/**
 * Divides a whole amount by weights: each has the whole part of its share, and the units that remain go to the
 * largest remainders, ties to the first id.
 */
export function divideWhole(amount: number, weights: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  let sum = 0;
  for (const weight of weights.values()) sum += weight;
  const whole = Math.floor(amount);
  const exact = [...weights].map(([id, weight]) => {
    const share = sum > 0 ? (whole * weight) / sum : 0;
    return { id, units: Math.floor(share), rest: share - Math.floor(share) };
  });
  let left = sum > 0 ? whole : 0;
  for (const { units } of exact) left -= units;
  const byRest = exact.toSorted((one, other) => other.rest - one.rest || compareIds(one.id, other.id));
  return new Map(byRest.map(({ id, units }, index) => [id, units + (index < left ? 1 : 0)]));
}

/** The shares of a limit: rates by demand, and bursts in proportion to the rates. */
export function fillShares(limit: Share, asking: readonly Asking[]): ReadonlyMap<string, Share> {
  const rates = fillRates(limit.rate, asking);
  const bursts = divideWhole(limit.burst, rates);
  return new Map([...rates].map(([id, rate]) => [id, { rate, burst: bursts.get(id) ?? 0 }]));
}

export function compareIds(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
