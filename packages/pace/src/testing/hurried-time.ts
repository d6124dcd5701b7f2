import { ManualClock } from "sluice";
import type { Schedule } from "../schedule.ts";

/** Time that jumps ahead as soon as a timer is set: for tests with real servers, which then need not sleep. */
export class HurriedTime {
  readonly clock: ManualClock;
  /** Every wait that was requested and not cancelled, in order. */
  readonly waits: number[] = [];

  constructor(epochMs: number = Date.now()) {
    this.clock = new ManualClock(epochMs);
  }

  readonly schedule: Schedule = (waitMs, wake) => {
    const atMs = this.clock.nowMs() + waitMs;
    const timer = setImmediate(() => {
      this.waits.push(waitMs);
      this.clock.advance(Math.max(0, atMs - this.clock.nowMs()));
      wake();
    });
    return () => clearImmediate(timer);
  };
}
