/** One minute of a ring before it joined. */
export interface BaselineMinute {
  readonly minute: number;
  readonly decided: number;
  readonly denied: number;
  /** How many times as often as on average others were denied in that minute; 1 if it does not matter. */
  readonly others: number;
  /** How much `others` varies by chance alone. */
  readonly othersVariance: number;
}

/** A ring's metrics while nothing changes for it. */
export interface Baseline {
  readonly minutes: number;
  readonly lastMinute: number;
  readonly decided: number;
  readonly denied: number;
  /** The share of decisions that are denials. */
  readonly rate: number;
  /** Variance from minute to minute, beyond what the counting of that many requests explains. */
  readonly noise: number;
  /** Variance that builds up slowly: how much more distant minutes differ than neighbours do. */
  readonly drift: number;
}

/**
 * The least that a comparison needs under the old version. Five minutes, because noise and drift are measured between
 * minutes. Twenty decisions, because σ grows as they get fewer: with twenty it takes many more denials to count as a
 * strike, and a version that denies everything is still noticed on the first step (decision 0039).
 */
export const baselineNeeds = { minutes: 5, decided: 20 } as const;

/**
 * Computes the baseline from minutes in order; undefined if they are too few.
 *
 * A minute strays from the mean by chance of counting, p(1 − p)/n, which is known; by noise of the traffic; and because
 * the traffic drifts. Noise and drift are separated by von Neumann's comparison: half the mean square of the
 * differences between neighbours is noise alone, the variance around the mean is both.
 */
export function describeBaseline(series: readonly BaselineMinute[]): Baseline | undefined {
  const minutes = series.length;
  const last = series[minutes - 1];
  if (last === undefined || minutes < baselineNeeds.minutes) return undefined;
  let decided = 0;
  let denied = 0;
  let exposed = 0;
  for (const one of series) {
    decided += one.decided;
    denied += one.denied;
    exposed += one.decided * one.others;
  }
  if (decided < baselineNeeds.decided) return undefined;
  const rate = exposed === 0 ? 0 : denied / exposed;
  const chance = denialVariance((denied + 1) / (decided + 2));

  let around = 0;
  let aroundByChance = 0;
  let neighbour = 0;
  let neighbourByChance = 0;
  let neighbourWeight = 0;
  let before: { readonly minute: number; readonly decided: number; strayed: number; byChance: number } | undefined;
  for (const one of series) {
    const strayed = one.denied / one.decided - rate * one.others;
    const byChance = chance / one.decided + rate * rate * one.othersVariance;
    around += one.decided * strayed * strayed;
    aroundByChance += one.decided * byChance;
    if (before !== undefined && before.minute === one.minute - 1) {
      const weight = (before.decided * one.decided) / (before.decided + one.decided);
      neighbour += (weight * (strayed - before.strayed) ** 2) / 2;
      neighbourByChance += (weight * (byChance + before.byChance)) / 2;
      neighbourWeight += weight;
    }
    before = { minute: one.minute, decided: one.decided, strayed, byChance };
  }
  const both = Math.max(0, ((around / decided) * minutes) / (minutes - 1) - aroundByChance / decided);
  const alone = neighbourWeight === 0 ? both : Math.max(0, (neighbour - neighbourByChance) / neighbourWeight);
  const drift = Math.max(0, both - alone);
  return { minutes, lastMinute: last.minute, decided, denied, rate, noise: both - drift, drift };
}

/**
 * How far from the mean a minute is expected to stray, squared, without the chance of counting. Drift is modelled as a
 * random walk, whose variance around the mean of T minutes is T/6 of that of a step: h minutes after the last one it is
 * h + T/3 steps away.
 */
export function varianceAfter(baseline: Baseline, minute: number): number {
  const { minutes, noise, drift, lastMinute } = baseline;
  return noise * (1 + 1 / minutes) + drift * (2 + (6 * (minute - lastMinute)) / minutes);
}

/** The variance of one request that is denied with this probability. */
export function denialVariance(probability: number): number {
  return probability * (1 - probability);
}
