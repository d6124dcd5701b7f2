import { type Decision, StoreUnavailable } from "sluice";
import type { StoreUnavailableReason } from "sluice/store";
import { reportError } from "./report-error.ts";
import { emitWarning } from "./warn-once-per-minute.ts";

/** A counted request ends an outage only if no request went uncounted for this long: a cluster may fail in part. */
const quietMs = 5000;

/** Reasons that counters with `reportsOutages` report. Only the caller sees that they are full or that too many checks wait. */
const reportedByCounters: ReadonlySet<StoreUnavailableReason> = new Set<StoreUnavailableReason>([
  "storage_unavailable",
  "storage_timeout",
  "process_starved",
]);

interface Outage {
  readonly sinceMs: number;
  lastMs: number;
}

/** Outages already warned about, by the unavailable counters or limiter: several gates warn once. */
const warned = new WeakMap<object, Outage>();

/**
 * Watches for decisions made without counters, and reports the outage behind them: to `onError` when it begins, else as a
 * process warning when it begins and another when it ends.
 */
export class OutageWatch<Request> {
  readonly #asked: object;
  readonly #warns: boolean;
  readonly #onError: ((error: unknown, request: Request) => void) | undefined;
  #outage: Outage | undefined;

  /** `asked`: the counters, or the remote limiter, that may be unavailable. `warns`: it warns of most outages itself. */
  constructor(asked: object, warns: boolean, onError: ((error: unknown, request: Request) => void) | undefined) {
    this.#asked = asked;
    this.#warns = warns;
    this.#onError = onError;
  }

  /** Whether an outage is in progress; then counted decisions must be passed to `counted`. */
  get isOn(): boolean {
    return this.#outage !== undefined;
  }

  /** A request was decided without counters. */
  degraded(decision: Decision, request: Request): void {
    const { degraded } = decision;
    // A kill switch is not an outage.
    if (degraded === undefined || degraded === "kill_switch") return;
    const nowMs = performance.now();
    const isNew = this.#outage === undefined;
    this.#outage ??= { sinceMs: nowMs, lastMs: nowMs };
    this.#outage.lastMs = nowMs;
    if (isNew) this.#begin(degraded, decision, request);
  }

  /** A request was counted. */
  counted(): void {
    const outage = this.#outage;
    if (outage === undefined || performance.now() - outage.lastMs < quietMs) return;
    this.#outage = undefined;
    if (warned.get(this.#asked) === undefined || this.#onError !== undefined) return;
    warned.delete(this.#asked);
    const seconds = Math.round((outage.lastMs - outage.sinceMs) / 1000);
    emitWarning("SLUICE_COUNTED_AGAIN", `counters are available again after ${seconds} s; requests are counted again`);
  }

  #begin(reason: StoreUnavailableReason, decision: Decision, request: Request): void {
    const what = `counters are unavailable (${reason}); ${describeEffect(decision)}`;
    if (this.#onError !== undefined) {
      reportError(this.#onError, new StoreUnavailable(reason, what), request, "SLUICE_LIMITER_FAILED", what);
      return;
    }
    if (warned.has(this.#asked) || (this.#warns && reportedByCounters.has(reason))) return;
    warned.set(this.#asked, this.#outage!);
    emitWarning("SLUICE_DEGRADED", `${what}. To handle this yourself, set onError`);
  }
}

/** A decision that was not counted has no `remaining`. */
function describeEffect({ allowed, remaining }: Decision): string {
  if (remaining !== undefined) return "this process counts on its own";
  return allowed ? "requests pass without being counted" : "requests are refused";
}
