/** One thing to be measured: runs `count` operations, starting at number `from` so that rounds see fresh work. */
export interface Contestant {
  readonly name: string;
  run(from: number, count: number): void | Promise<void>;
}

/** Nanoseconds per operation of each contestant, round by round. */
export type Rounds = ReadonlyMap<string, readonly number[]>;

/**
 * Measures contestants in turns, many short rounds each, so that other load on the machine affects all of them equally.
 * The first rounds warm up and are not counted.
 */
export async function interleave(
  contestants: readonly Contestant[],
  { rounds = 15, warmup = 4, count = 200_000 }: { rounds?: number; warmup?: number; count?: number } = {},
): Promise<Rounds> {
  const results = new Map<string, number[]>(contestants.map(({ name }) => [name, []]));
  for (let round = 0; round < warmup + rounds; round++) {
    for (const { name, run } of contestants) {
      const started = performance.now();
      await run(round * count, count);
      const perOperationNs = ((performance.now() - started) * 1e6) / count;
      if (round >= warmup) results.get(name)!.push(perOperationNs);
    }
  }
  return results;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function perSecond(rounds: Rounds, name: string): number {
  return Math.round(1e9 / median(rounds.get(name)!));
}

/** How many times as fast `name` is as `than`: the median of the ratios of their rounds. */
export function ratio(rounds: Rounds, name: string, than: string): number {
  const theirs = rounds.get(than)!;
  return Math.round(median(rounds.get(name)!.map((ns, i) => theirs[i]! / ns)) * 100) / 100;
}
