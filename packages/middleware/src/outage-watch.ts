import { type Decision, StoreUnavailable, type StoreUnavailableReason } from "sluice";
import { reportError } from "./report-error.ts";
import { emitWarning } from "./warn-of-process.ts";

/** A counted request ends an outage once none was decided without counters for so long: a cluster may fail in part. */
const quietMs = 5000;

/** What counters that report outages report. That they are full, or that too many checks wait, only the caller sees. */
const reportedByCounters: ReadonlySet<StoreUnavailableReason> = new Set<StoreUnavailableReason>([
  "storage_unavailable",
  "storage_timeout",
  "process_starved",
]);

interface Outage {
  readonly sinceMs: number;
  lastMs: number;
}

/** Outages of which the process was warned, by the counters or the limiter that cannot be asked: several gates warn once. */
const warned = new WeakMap<object, Outage>();

/**
 * Sees the decisions that were made without counters, and reports the outage that they mean: to `onError` when it begins, else by
 * a warning of the process when it begins and one when it ends.
 */
export class OutageWatch<Request> {
  readonly #asked: object;
  readonly #warns: boolean;
  readonly #onError: ((error: unknown, request: Request) => void) | undefined;
  #outage: Outage | undefined;

  /** `asked` is what cannot be asked: counters, or a limiter elsewhere. `warns`: it warns of most outages itself. */
  constructor(asked: object, warns: boolean, onError: ((error: unknown, request: Request) => void) | undefined) {
    this.#asked = asked;
    this.#warns = warns;
    this.#onError = onError;
  }

  /** Whether an outage is under way, so that counted decisions have to be shown as well. */
  get isOn(): boolean {
    return this.#outage !== undefined;
  }

  /** A request was decided without counters. */
  degraded(decision: Decision, request: Request): void {
    const { degraded } = decision;
    // An operator's switch is no outage.
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
    emitWarning("SLUICE_COUNTED_AGAIN", `counters can be asked again, after ${seconds} s; requests are counted again`);
  }

  #begin(reason: StoreUnavailableReason, decision: Decision, request: Request): void {
    const what = `counters cannot be asked (${reason}); ${effectOf(decision)}`;
    if (this.#onError !== undefined) {
      reportError(this.#onError, new StoreUnavailable(reason, what), request, "SLUICE_LIMITER_FAILED", what);
      return;
    }
    if (warned.has(this.#asked) || (this.#warns && reportedByCounters.has(reason))) return;
    warned.set(this.#asked, this.#outage!);
    emitWarning("SLUICE_DEGRADED", `${what}. To handle this yourself, say onError`);
  }
}

/** Of a decision that nothing counted, what remains is not known. */
function effectOf({ allowed, remaining }: Decision): string {
  if (remaining !== undefined) return "this process counts alone";
  return allowed ? "requests pass without being counted" : "requests are refused";
}
