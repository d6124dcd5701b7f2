import type { Clock } from "sluice";
import type { SimulatedRequest } from "./simulated-request.ts";

/** A clock that shows the time of the request being replayed. */
export class ReplayClock implements Clock {
  #originMs: number;
  #nowMs: number;

  /** Begins at the time of a request. */
  constructor({ timeMs, recorded }: Pick<SimulatedRequest, "timeMs" | "recorded">) {
    this.#originMs = timeMs;
    this.#nowMs = 0;
    if (recorded?.steadyMs !== undefined) this.moveToInstant(recorded.originMs, recorded.steadyMs);
  }

  nowMs(): number {
    return this.#nowMs;
  }

  epochMs(): number {
    return this.#originMs + this.#nowMs;
  }

  /** Limiters ignore steps back: time stands still for them until the clock has caught up. */
  moveTo(epochMs: number): void {
    this.#nowMs = epochMs - this.#originMs;
  }

  /** Shows an instant as the recorded clock did, to the last bit. */
  moveToInstant(originMs: number, steadyMs: number): void {
    this.#originMs = originMs;
    this.#nowMs = steadyMs;
  }
}
