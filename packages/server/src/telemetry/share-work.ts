import { setTimeout as after } from "node:timers/promises";

/** Work is not begun again before it has rested ten times as long as it took, or a quarter of a second. */
const restFactor = 10;
const maxRestMs = 250;

/**
 * Does some work once for all callers that ask for it at the same time, such as rendering a page. Work that has begun does not count for
 * those that ask later: its result might lack what happened in between, so they wait together for the next one. A
 * result is therefore never older than its question, and however many ask, the work takes a tenth of the time.
 */
export function shareWork<T>(work: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | undefined;
  let running: Promise<unknown> = Promise.resolve();
  let restUntilMs = 0;

  async function workNext(): Promise<T> {
    // A failure is reported to the callers that asked for it.
    await running.catch(() => {});
    const restMs = restUntilMs - performance.now();
    if (restMs > 0) await after(restMs);
    next = undefined;
    const beganMs = performance.now();
    const result = work();
    running = result;
    try {
      return await result;
    } finally {
      const endedMs = performance.now();
      restUntilMs = endedMs + Math.min((endedMs - beganMs) * restFactor, maxRestMs);
    }
  }

  return () => {
    next ??= workNext();
    return next;
  };
}
