import { SluiceError } from "sluice";

/**
 * Limits of a connection without an identified caller: open calls, calls at once and per second, and bytes of a message. Such
 * callers get answers from health and reflection alone, whose requests are small.
 */
export const unknownCallers = {
  openCalls: 100,
  burstCalls: 1_000,
  callsPerSecond: 100,
  maxMessageBytes: 16_384,
} as const;

/** How many calls a connection without an identified caller may still make. */
export class UnknownCallerCalls {
  #left: number = unknownCallers.burstCalls;
  #atMs: number = performance.now();

  /** Whether another call may be made now; if not, the connection is closed. */
  take(): boolean {
    const nowMs = performance.now();
    const earned = ((nowMs - this.#atMs) / 1_000) * unknownCallers.callsPerSecond;
    this.#left = Math.min(this.#left + earned, unknownCallers.burstCalls) - 1;
    this.#atMs = nowMs;
    return this.#left >= 0;
  }
}

/** Why a further call of an unidentified caller is refused. */
export function tooManyOpenCalls(): SluiceError {
  const { openCalls } = unknownCallers;
  return new SluiceError(
    "overloaded",
    `a connection without an identified caller may have ${openCalls} open calls; end some, or send a token`,
  );
}
