/** Calls `wake` once, `waitMs` from now. Returns a function that cancels it. Tests pass their own, so that they need not sleep. */
export type Schedule = (waitMs: number, wake: () => void) => () => void;

/** The longest wait of one timer; Node treats a longer one as one millisecond. */
const maxTimerMs = 2_147_483_647;

/** Timers count whole milliseconds from the last turn of the event loop, so they may fire this much early. */
const timerSlackMs = 2;

export const systemSchedule: Schedule = (waitMs, wake) => {
  const dueMs = performance.now() + waitMs;
  let timer = setTimeout(ring, Math.min(maxTimerMs, Math.ceil(waitMs)));
  let leftMs = waitMs;
  function ring(): void {
    leftMs -= maxTimerMs;
    const earlyMs = dueMs - performance.now();
    if (leftMs > 0) timer = setTimeout(ring, Math.min(maxTimerMs, Math.ceil(leftMs)));
    // A call before the time that a server asked for is refused again.
    else if (earlyMs > 0 && earlyMs < timerSlackMs) timer = setTimeout(ring, Math.ceil(earlyMs));
    else wake();
  }
  return () => clearTimeout(timer);
};

/** Resolves after a wait. Rejects with the signal's reason as soon as it aborts, and then leaves no timer behind. */
export function sleep(waitMs: number, schedule: Schedule, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const callOff = schedule(waitMs, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    function abort(): void {
      callOff();
      reject(signal?.reason);
    }
    signal?.addEventListener("abort", abort, { once: true });
  });
}
