import { setTimeout as after, setImmediate as round } from "node:timers/promises";

/** Work pauses for ten times as long as it took, or a quarter of a second, before it begins again. */
const restFactor = 10;
const maxRestMs = 250;
/** How many callers get their result in one turn of the event loop: each does something with it. */
const callersPerRound = 16;

interface Caller<T> {
  readonly resolve: (result: T) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Does work, such as rendering a page, once for all concurrent callers. Callers that arrive after it has begun wait
 * together for the next run: its result might lack what happened in between. A result is therefore never older than its
 * request, and however many callers there are, the work takes a tenth of the time.
 */
export function shareWork<T>(work: () => Promise<T>): () => Promise<T> {
  let waiting: Caller<T>[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    // Lets all callers of the same moment arrive.
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
