import { SluiceError } from "sluice";
import type { ShedReason } from "../../observe/telemetry/metrics.ts";

export interface AdmissionOptions {
  /** The most checks that wait for remote counters. */
  readonly maxPending: number;
  /** The most checks in a second; 0: no bound. */
  readonly maxChecksPerSecond: number;
  readonly onShed: (reason: ShedReason, checks: number) => void;
}

/** Sheds load: refuses checks at once if too many wait for counters already, or arrive in one second. */
export class Admission {
  /** Checks waiting for counters now. Callers add to it and subtract from it. */
  pending = 0;
  readonly #options: AdmissionOptions;
  /** When the checks of the last second's worth are through (GCRA). */
  #arrivalMs = -Infinity;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Throws `overloaded` if these checks may not be decided now. */
  admit(checks: number, nowMs: number): void {
    const { maxPending, maxChecksPerSecond } = this.#options;
    if (this.pending + checks > maxPending && this.pending > 0) this.#shed("pending", checks);
    if (maxChecksPerSecond > 0 && !this.#isWithinRate(checks, nowMs)) this.#shed("rate", checks);
  }

  /** The node's own limit. A second's worth may come at once. */
  #isWithinRate(checks: number, nowMs: number): boolean {
    const nextMs = Math.max(this.#arrivalMs, nowMs) + (checks * 1_000) / this.#options.maxChecksPerSecond;
    // A batch larger than a second's worth passes when nothing else did, rather than never.
    if (nextMs - nowMs > toleranceMs && this.#arrivalMs > nowMs) return false;
    this.#arrivalMs = nextMs;
    return true;
  }

  #shed(reason: ShedReason, checks: number): never {
    this.#options.onShed(reason, checks);
    throw new SluiceError(
      "overloaded",
      reason === "pending"
        ? "too many checks are waiting for the counters here; retry shortly, or ask another server"
        : "this server is at its configured check rate; retry shortly, or ask another server",
    );
  }
}

/** A second's worth; a microsecond more, because fractional intervals do not add up to a second. */
const toleranceMs = 1_000.001;
