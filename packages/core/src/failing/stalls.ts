import type { StoreUnavailableReason } from "../counters/store-unavailable.ts";

/** A delay this long was caused by this process; timers of an idle one are late by a millisecond or two. */
const noticeableMs = 4;
/** How much longer a question may wait at most because this process did not run. */
export const mostExcusedMs = 1000;

/**
 * Notices that this process did not run: it had no turn on a processor, or was busy with something else. The server
 * that was to answer is not to blame for that.
 */
export class Stalls {
  #countedMs = Number.NEGATIVE_INFINITY;
  #delayMs = 0;
  #totalMs = 0;

  /** How long it did not run, as far as that was noticed. */
  get totalMs(): number {
    return this.#totalMs;
  }

  /**
   * Notes that work due at `dueMs` runs only now. `delayMs` is how long this process has waited for a processor since
   * it began, if known. Returns since when it has not run, as if that were one stretch of time, or undefined if it is
   * hardly late.
   */
  note(dueMs: number, nowMs: number, delayMs = 0): number | undefined {
    const lateMs = nowMs - Math.max(dueMs, this.#countedMs);
    const stalledMs = Math.max(lateMs, delayMs - this.#delayMs);
    this.#delayMs = delayMs;
    if (stalledMs <= noticeableMs) return undefined;
    this.#countedMs = nowMs;
    this.#totalMs += stalledMs;
    return nowMs - stalledMs;
  }
}

/** A question that waits for its answer. */
export interface Excusable {
  readonly startMs: number;
  /** When it is given up. */
  readonly expiresMs: number;
  /** How long it may go unanswered while this process runs. */
  readonly patienceMs: number;
  /** How long it has waited while this process did not run. */
  excusedMs: number;
}

/**
 * Excuses a question for a stall. Returns by how much its deadline moves: by the length of the stall, and far enough
 * that half of its patience is left. A stall is noticed by what was due in it, so when it began is not known, nor
 * whether the question had left by then.
 */
export function excuse(waiting: Excusable, stalledSinceMs: number, nowMs: number): number {
  const stalledMs = nowMs - Math.max(stalledSinceMs, waiting.startMs);
  const shortMs = nowMs + waiting.patienceMs / 2 - waiting.expiresMs;
  const movedMs = Math.max(Math.min(Math.max(stalledMs, shortMs), mostExcusedMs - waiting.excusedMs), 0);
  waiting.excusedMs += movedMs;
  return movedMs;
}

/**
 * Whether this process is why a question went unanswered: it did not run for as long as the whole deadline, so nothing
 * can be said about the server.
 */
export function isStarved({ excusedMs, patienceMs }: Pick<Excusable, "excusedMs" | "patienceMs">): boolean {
  return excusedMs >= patienceMs;
}

/** Why a question was not answered in time. */
export function whyLate(
  waiting: Pick<Excusable, "excusedMs" | "patienceMs">,
): Extract<StoreUnavailableReason, "storage_timeout" | "process_starved"> {
  return isStarved(waiting) ? "process_starved" : "storage_timeout";
}
