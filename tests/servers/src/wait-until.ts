import { setTimeout as sleep } from "node:timers/promises";

const pollMs = 20;

/**
 * Asks again and again until the answer is defined, and returns it. Rejects after `withinMs`, also when a question is never
 * answered, and then with the last error if asking threw one.
 */
export async function waitUntil<Answer>(
  what: string,
  withinMs: number,
  ask: () => Promise<Answer | undefined>,
): Promise<Answer> {
  const deadlineMs = performance.now() + withinMs;
  for (;;) {
    let problem: unknown;
    try {
      const leftMs = Math.max(0, deadlineMs - performance.now());
      const answer = await Promise.race([ask(), sleep(leftMs, undefined, { ref: false })]);
      if (answer !== undefined) return answer;
    } catch (error) {
      problem = error;
    }
    if (performance.now() > deadlineMs) throw new Error(`Not within ${withinMs} ms: ${what}.`, { cause: problem });
    await sleep(pollMs);
  }
}
