import type { Clock } from "sluice";
import { systemClock } from "sluice/internal";

/** Calls `wake` once, `waitMs` from now. Returns a function that cancels it. */
export type Schedule = (waitMs: number, wake: () => void) => () => void;

/** The client's clock and timers. Tests pass their own, so that they need not sleep. */
export interface RemoteTime {
  readonly clock: Clock;
  /** For a wait that a caller depends on: keeps the process alive until then. */
  readonly schedule: Schedule;
  /** For work in the background: does not keep the process alive. */
  readonly scheduleIdly: Schedule;
  /** At the end of this turn of the event loop, when all of its input has been read. */
  readonly soon: (act: () => void) => void;
}

export const systemTime: RemoteTime = {
  clock: systemClock,
  // A timer may fire up to a millisecond early: the question line then reads the clock, and waits for the rest.
  schedule(waitMs, wake) {
    const timer = setTimeout(wake, Math.ceil(waitMs));
    return () => clearTimeout(timer);
  },
  scheduleIdly(waitMs, wake) {
    const timer = setTimeout(wake, waitMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  soon: (act) => void setImmediate(act),
};
