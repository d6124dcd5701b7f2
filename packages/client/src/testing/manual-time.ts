import { ManualClock } from "sluice";
import type { Schedule } from "../remote-time.ts";

interface Timer {
  readonly atMs: number;
  readonly wake: () => void;
}

/** A clock with timers: time passes when a test says so, and everything due on the way happens in order. */
export class ManualTime {
  readonly clock: ManualClock = new ManualClock();
  readonly #timers = new Set<Timer>();

  readonly schedule: Schedule = (waitMs, wake) => {
    const timer: Timer = { atMs: this.clock.nowMs() + waitMs, wake };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };

  /** How many timers are set. */
  get timers(): number {
    return this.#timers.size;
  }

  /** When the next timer is due, if one is set. */
  get nextMs(): number | undefined {
    return this.#timers.size === 0 ? undefined : Math.min(...[...this.#timers].map(({ atMs }) => atMs));
  }

  /** Lets time pass. Promises that a timer settles are followed up before the next timer. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.clock.nowMs() + ms;
    await settled();
    for (let next = this.#firstUntil(untilMs); next !== undefined; next = this.#firstUntil(untilMs)) {
      this.#timers.delete(next);
      this.clock.advance(Math.max(0, next.atMs - this.clock.nowMs()));
      next.wake();
      await settled();
    }
    this.clock.advance(untilMs - this.clock.nowMs());
  }

  #firstUntil(untilMs: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs <= untilMs && (first === undefined || timer.atMs < first.atMs)) first = timer;
    }
    return first;
  }
}

/** Settles every promise that needs no input from outside, and what these do at the end of a turn, a few turns long. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
}
