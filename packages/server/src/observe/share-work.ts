import { setTimeout as after, setImmediate as round } from "node:timers/promises";

/** Work is not begun again before it has rested ten times as long as it took, or a quarter of a second. */
const restFactor = 10;
const maxRestMs = 250;
/** So many callers get their result in a round of the event loop: each goes on to do something with it. */
const callersPerRound = 16;

interface Caller<T> {
  readonly resolve: (result: T) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Does some work once for all callers that ask for it at the same time, such as rendering a page. Work that has begun does not count for
 * those that ask later: its result might lack what happened in between, so they wait together for the next one. A
 * result is therefore never older than its question, and however many ask, the work takes a tenth of the time.
 */
export function shareWork<T>(work: () => Promise<T>): () => Promise<T> {
  let waiting: Caller<T>[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    // Callers of the same moment are all there.
    await undefined;
    while (waiting.length > 0) {
      const callers = waiting;
      waiting = [];
      const beganMs = performance.now();
      const settle = await work().then(
        (result) => (caller: Caller<T>) => caller.resolve(result),
        (error: unknown) => (caller: Caller<T>) => caller.reject(error),
      );
      const tookMs = performance.now() - beganMs;
      for (const [at, caller] of callers.entries()) {
        if (at > 0 && at % callersPerRound === 0) await round();
        settle(caller);
      }
      await after(Math.min(tookMs * restFactor, maxRestMs), undefined, { ref: false });
    }
    isRunning = false;
  }

  return () =>
    new Promise<T>((resolve, reject) => {
      waiting.push({ resolve, reject });
      if (!isRunning) void run();
    });
}
