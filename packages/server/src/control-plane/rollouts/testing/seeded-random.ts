/** Random numbers that are the same for the same seed. */
export interface SeededRandom {
  /** 0 … 1. */
  uniform(): number;
  between(min: number, max: number): number;
  /** Mean 0, variance 1. */
  normal(): number;
  /** A Poisson number with this mean. */
  poisson(mean: number): number;
  /** A binomial number: how many of n, each with probability p. */
  binomial(n: number, p: number): number;
}

export function createSeededRandom(seed: number): SeededRandom {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0;
  let spare: number | undefined;

  /** mulberry32. */
  function uniform(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  }

  /** Box and Muller's method: numbers come in pairs. */
  function normal(): number {
    if (spare !== undefined) {
      const kept = spare;
      spare = undefined;
      return kept;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
    const angle = 2 * Math.PI * uniform();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  function poisson(mean: number): number {
    if (mean > 30) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal()));
    let chance = Math.exp(-mean);
    return countUp(chance, (count) => {
      chance *= mean / count;
      return chance;
    });
  }

  function binomial(n: number, p: number): number {
    if (p <= 0 || n === 0) return 0;
    if (p > 0.5) return n - binomial(n, 1 - p);
    const variance = n * p * (1 - p);
    if (variance > 25) return Math.min(n, Math.max(0, Math.round(n * p + Math.sqrt(variance) * normal())));
    let chance = (1 - p) ** n;
    return countUp(chance, (count) => {
      chance *= ((p / (1 - p)) * (n - count + 1)) / count;
      return chance;
    });
  }

  /** The first count at which the cumulative probability exceeds a random number. */
  function countUp(none: number, probabilityAt: (count: number) => number): number {
    const drawn = uniform();
    let count = 0;
    for (let total = none; total < drawn && count < 1_000; total += probabilityAt(count)) count++;
    return count;
  }

  return { uniform, between: (min, max) => min + (max - min) * uniform(), normal, poisson, binomial };
}
