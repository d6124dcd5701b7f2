import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { StoreUnavailable, type StoreUnavailableReason } from "sluice/store";
import { CallFailed, type CounterDatabase } from "./counter-database.ts";
import { type FoundRows, type RowChanges, RowsInTurn } from "./rows-in-turn.ts";

/** How many actions share a transaction at most. */
const mostTogether = 256;
/** How many wait for one at most. */
const mostWaiting = 10_000;
const maxPauseMs = 20;
/** For how long the row that names a lane's last transaction is kept. */
const noteMs = 60 * 60 * 1000;

/** What is to be done to some rows, at one instant. It does not wait, and throws before it changes anything. */
export interface RowAction<T> {
  readonly rows: readonly string[];
  readonly marks?: readonly string[] | undefined;
  run(rows: RowsInTurn): T;
}

/** What a lane counts. */
export interface LaneCounts {
  actions: number;
  transactions: number;
  /** Transactions that were begun again, because another was in the way. */
  conflicts: number;
  /** Commits whose answer was lost, and was found out. */
  recovered: number;
  /** Commits of which it could not be found out in time whether they were made. */
  unknown: number;
  failures: number;
  /** How long transactions took, in milliseconds. */
  totalMs: number;
}

export interface LaneOptions {
  readonly database: () => Promise<CounterDatabase>;
  /** Whether it only reads. */
  readonly looks?: boolean;
  readonly counts: LaneCounts;
  /** Called before every call. What it returns is called after it, with the failure if the database did not answer. */
  beginCall(): (failed?: CallFailed) => void;
  /** Instead of the database's clock. */
  readonly nowMs?: (() => number) | undefined;
}

interface Waiting {
  readonly action: RowAction<unknown>;
  readonly expiresMs: number;
  readonly timer: NodeJS.Timeout;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  settled: boolean;
  outcome: { readonly value: unknown } | { readonly error: unknown } | undefined;
}

/**
 * Actions that arrive while a transaction is under way share the next one, so a row that everyone wants is locked and
 * committed once for all of them.
 *
 *     waiting ─► together: lock ─► decide one after another ─► commit ─┬─► answered
 *        ▲                                                            ├─► conflict, or undone on a broken connection ─► again
 *        └── at the deadline: answered without being decided          └─► answer lost ─► was it committed? ─► answered, or again
 *
 * Every transaction that writes also numbers the lane's own row, which it locked with the others. If the answer to a
 * commit is lost, the number shows whether it was made, as soon as the row can be locked again: until then the lost
 * transaction may still be under way. So nothing is charged twice.
 */
export class CounterLane {
  readonly #options: LaneOptions;
  readonly #note = `n${randomBytes(20).toString("hex")}`;
  readonly #waiting: Waiting[] = [];
  #number = 0;
  #running = false;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Rejects with `StoreUnavailable`, or with what the action throws. */
  ask<T>(action: RowAction<T>, withinMs: number): Promise<T> {
    if (this.#waiting.length >= mostWaiting)
      return Promise.reject(new StoreUnavailable("storage_overloaded", undefined, { mayBeDone: false }));
    return new Promise<T>((resolve, reject) => {
      const waiting: Waiting = {
        action,
        expiresMs: performance.now() + withinMs,
        timer: setTimeout(() => this.#expire(waiting), withinMs),
        resolve: resolve as (value: unknown) => void,
        reject,
        settled: false,
        outcome: undefined,
      };
      this.#waiting.push(waiting);
      if (this.#running) return;
      this.#running = true;
      // What else this turn asks travels along.
      setImmediate(() => void this.#run());
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) await this.#carryOut(this.#waiting.splice(0, mostTogether));
    this.#running = false;
  }

  /** Its time is up. One that is being decided may be carried out all the same; one that waits is not. */
  #expire(one: Waiting): void {
    const place = this.#waiting.indexOf(one);
    if (place >= 0) this.#waiting.splice(place, 1);
    fail(one, "storage_timeout", { mayBeDone: place < 0 && one.outcome !== undefined });
  }

  async #carryOut(batch: readonly Waiting[]): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const live = batch.filter((one) => !one.settled);
      const withinMs = Math.max(...live.map(({ expiresMs }) => expiresMs)) - performance.now();
      if (live.length === 0 || withinMs <= 0) return;
      for (const one of live) one.outcome = undefined;
      const failed = await this.#callFor(live, withinMs);
      if (failed === undefined) return settle(live);
      if (failed.outcome === "unknown") {
        const committed = await this.#wasCommitted(this.#number, withinMs);
        if (committed === true) return settle(live);
        if (committed === undefined) {
          for (const one of live) fail(one, "storage_unavailable", { cause: failed });
          return;
        }
      } else if (failed.outcome === "conflict") {
        this.#options.counts.conflicts += 1;
        await sleep(1 + Math.random() * Math.min(maxPauseMs, 2 ** attempt));
      } else if (failed.late || attempt > 1) {
        const reason = failed.late ? "storage_timeout" : "storage_unavailable";
        for (const one of live) fail(one, reason, { cause: failed, mayBeDone: false });
        return;
      }
      // Nothing was written. A connection that broke while it was idle is replaced once.
    }
  }

  async #callFor(live: readonly Waiting[], withinMs: number): Promise<CallFailed | undefined> {
    const { looks = false, counts, database } = this.#options;
    const rows = [...new Set(live.flatMap(({ action }) => action.rows))];
    const marks = [...new Set(live.flatMap(({ action }) => action.marks ?? []))];
    const startedMs = performance.now();
    counts.transactions += 1;
    const endCall = this.#options.beginCall();
    try {
      const opened = await database();
      if (looks) this.#decide(live, await opened.look([...rows, ...marks], withinMs));
      else {
        this.#number += 1;
        await opened.change([...rows, this.#note], marks, withinMs, (found) => this.#decide(live, found));
      }
      counts.actions += live.length;
      endCall();
      return undefined;
    } catch (error) {
      const failed = error instanceof CallFailed ? error : new CallFailed("undone", String(error), { cause: error });
      if (failed.outcome !== "conflict") {
        counts.failures += 1;
        endCall(failed);
      }
      return failed;
    } finally {
      counts.totalMs += performance.now() - startedMs;
    }
  }

  /** One after another. What a caller no longer waits for is left out. */
  #decide(live: readonly Waiting[], found: FoundRows): RowChanges {
    const rows = new RowsInTurn(found, this.#options.nowMs?.() ?? found.nowMs);
    for (const one of live) {
      if (one.settled) continue;
      try {
        one.outcome = { value: one.action.run(rows) };
      } catch (error) {
        one.outcome = { error };
      }
    }
    const changes = rows.changes();
    if (changes.put.length + changes.drop.length === 0) return changes;
    const note = { id: this.#note, state: String(this.#number), untilMs: found.nowMs + noteMs };
    return { ...changes, put: [...changes.put, note] };
  }

  /** Whether the transaction of this number was committed; undefined if that cannot be found out in time. */
  async #wasCommitted(number: number, withinMs: number): Promise<boolean | undefined> {
    const { counts, database } = this.#options;
    const untilMs = performance.now() + withinMs;
    for (;;) {
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) break;
      let last: string | undefined;
      try {
        const opened = await database();
        await opened.change([this.#note], [], leftMs, ({ rows }) => {
          last = rows.get(this.#note)?.state;
          return { put: [], drop: [] };
        });
        counts.recovered += 1;
        return last === String(number);
      } catch {
        await sleep(Math.min(maxPauseMs, Math.max(leftMs, 1)));
      }
    }
    counts.unknown += 1;
    return undefined;
  }
}

function settle(live: readonly Waiting[]): void {
  for (const one of live) {
    if (one.settled || one.outcome === undefined) continue;
    one.settled = true;
    clearTimeout(one.timer);
    if ("error" in one.outcome) one.reject(one.outcome.error);
    else one.resolve(one.outcome.value);
  }
}

function fail(
  one: Waiting,
  reason: StoreUnavailableReason,
  options: { readonly cause?: unknown; readonly mayBeDone?: boolean },
): void {
  if (one.settled) return;
  one.settled = true;
  clearTimeout(one.timer);
  one.reject(new StoreUnavailable(reason, undefined, options));
}
