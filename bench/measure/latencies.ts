/** Milliseconds from each check to its answer. */
export type Latencies = readonly number[];

/** A fixed number of callers, each of which asks again as soon as it is answered. */
export async function closedLoop(
  ask: (number: number) => Promise<unknown>,
  { from, inFlight, forMs }: { from: number; inFlight: number; forMs: number },
): Promise<Latencies> {
  const latencies: number[] = [];
  const endMs = performance.now() + forMs;
  let next = from;
  const loop = async (): Promise<void> => {
    for (let nowMs = performance.now(); nowMs < endMs; ) {
      const askedMs = nowMs;
      await ask(next++);
      nowMs = performance.now();
      latencies.push(nowMs - askedMs);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, loop));
  return latencies;
}

/**
 * Callers that arrive at random, at a given rate, whether or not others still wait. Latency counts from the moment a caller
 * was due, so that delays of this process count as well.
 */
export async function openLoop(
  ask: (number: number) => Promise<unknown>,
  { from, perSecond, forMs }: { from: number; perSecond: number; forMs: number },
): Promise<Latencies> {
  const latencies: number[] = [];
  const answers: Promise<void>[] = [];
  let next = from;
  let dueMs = performance.now();
  const endMs = dueMs + forMs;
  while (dueMs < endMs) {
    const nowMs = performance.now();
    while (dueMs <= nowMs) {
      const askedMs = dueMs;
      answers.push(
        ask(next++).then(() => {
          latencies.push(performance.now() - askedMs);
        }),
      );
      dueMs -= (Math.log(1 - Math.random()) / perSecond) * 1000;
    }
    await new Promise(setImmediate);
  }
  await Promise.all(answers);
  return latencies;
}

/** The latency that a share of all does not exceed. */
export function percentile(latencies: Latencies, share: number): number {
  const sorted = Float64Array.from(latencies).sort();
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)]!;
}
