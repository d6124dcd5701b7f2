import { type Clock, systemClock } from "sluice";
import { type Schedule, systemSchedule } from "../schedule.ts";

/** Time as the remote client knows it, handed in so that tests need not sleep. */
export interface RemoteTime {
  readonly clock: Clock;
  /** For who waits: keeps the process alive until then. */
  readonly schedule: Schedule;
  /** For what nobody waits for: does not keep the process alive. */
  readonly scheduleIdly: Schedule;
  /** At the end of this turn of the event loop, when everything that arrived in it has been read. */
  readonly soon: (act: () => void) => void;
}

export const systemTime: RemoteTime = {
  clock: systemClock,
  schedule: systemSchedule,
  scheduleIdly(waitMs, wake) {
    const timer = setTimeout(wake, waitMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  soon: (act) => void setImmediate(act),
};
