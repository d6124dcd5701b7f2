import type { Clock } from "sluice";

/** A clock that shows the time of the request being replayed. */
export class ReplayClock implements Clock {
  readonly #originMs: number;
  #epochMs: number;

  constructor(epochMs: number) {
    this.#originMs = epochMs;
    this.#epochMs = epochMs;
  }

  nowMs(): number {
    return this.#epochMs - this.#originMs;
  }

  epochMs(): number {
    return this.#epochMs;
  }

  /** Limiters ignore steps back: time stands still for them until the clock has caught up. */
  moveTo(epochMs: number): void {
    this.#epochMs = epochMs;
  }
}
