import type { ArrivalTake } from "../algorithms/arrival.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import type { CheckRequest } from "../request/check-request.ts";
import type { CounterStore, TakeAnswer } from "./counter-store.ts";

/**
 * What a counter store may offer on top of `CounterStore`: a quick `take` for the commonest request, one limit with one
 * window of arrival times and no further options. A store without it works through `take`; see `singleTakesFrom`.
 *
 * It is faster because it leaves things out: no list of one limit, no answer object, no promise between the store and
 * its caller. In return both sides keep to this:
 *
 * - The caller asks about one window of kind `arrival`, of a limit that cannot be blocked and whose policy does not
 *   count denials. For such a limit the answer is that of `take([{ limit, windows, subject, cost, group: 0 }])`.
 * - An outcome is one object that the store reuses. It is valid until the next call; copy it to keep it.
 * - A store that has its answer at once returns the outcome, or throws. One that has to wait calls `callback` when the
 *   answer comes, either `decide` or `fail`, once, and its promise resolves with the result.
 * - A store reads only `deadlineMs` of the request, and hands the rest to the callback.
 */
export interface SingleTakes {
  takeOne<T>(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
    request: CheckRequest,
    callback: TakeCallback<T>,
  ): Readonly<OneOutcome> | Promise<T>;
}

/** Turns the answer to `takeOne`, when it comes later, into what the caller wants. The caller gets what it throws. */
export interface TakeCallback<T> {
  /** `outcome` is valid until this returns. */
  decide(limit: CompiledLimit, subject: string, cost: number, outcome: Readonly<OneOutcome>): T;
  fail(request: CheckRequest, error: unknown): T;
}

/** The outcome of a take from one window, and when it was decided. */
export interface OneOutcome extends ArrivalTake {
  window: CompiledWindow;
  atMs: number;
  /** As in `TakeAnswer`; 0 if they come in order. */
  order: number;
}

/** An outcome to be overwritten; at first, one that fits. */
export function createOneOutcome(window: CompiledWindow): OneOutcome {
  return {
    fits: "now",
    window,
    remaining: 0,
    retryAfterMs: 0,
    resetAfterMs: 0,
    moreAfterMs: 0,
    queuePosition: 0,
    queueDelayMs: 0,
    atMs: 0,
    order: 0,
  };
}

/** Turns an outcome into the answer of `take`. */
export const wholeAnswer: TakeCallback<TakeAnswer> = {
  decide: (_limit, _subject, _cost, { atMs, order, ...outcome }) => ({
    taken: outcome.fits === "now",
    atMs,
    order,
    outcomes: [{ ...outcome, windowRemaining: outcome.remaining }],
    receipt: undefined,
    replayed: false,
  }),
  fail(_request, error) {
    throw error;
  },
};

/** The store itself, if it offers single takes. */
export function findSingleTakes(store: CounterStore): SingleTakes | undefined {
  const { takeOne } = store as CounterStore & Partial<SingleTakes>;
  return typeof takeOne === "function" ? (store as CounterStore & SingleTakes) : undefined;
}

/** Single takes from any store: its own, or through its `take`. */
export function singleTakesFrom(store: CounterStore): SingleTakes {
  return findSingleTakes(store) ?? new SingleTakesByTake(store);
}

class SingleTakesByTake implements SingleTakes {
  readonly #store: CounterStore;

  constructor(store: CounterStore) {
    this.#store = store;
  }

  takeOne<T>(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
    request: CheckRequest,
    callback: TakeCallback<T>,
  ): Readonly<OneOutcome> | Promise<T> {
    const { deadlineMs } = request;
    const asked = [{ limit, windows, subject, cost, group: 0 }];
    const answer = this.#store.take(asked, deadlineMs === undefined ? undefined : { deadlineMs });
    if (!(answer instanceof Promise)) return outcomeFrom(answer);
    return answer.then(
      (later) => callback.decide(limit, subject, cost, outcomeFrom(later)),
      (error: unknown) => callback.fail(request, error),
    );
  }
}

function outcomeFrom({ outcomes, atMs, order = 0 }: TakeAnswer): OneOutcome {
  return { ...outcomes[0]!, atMs, order };
}
