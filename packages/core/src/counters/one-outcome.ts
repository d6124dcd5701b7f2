import type { CompiledWindow } from "../limits/compiled-limit.ts";
import type { OneAsker, OneOutcome, TakeAnswer } from "./counter-store.ts";

/** An outcome to be written into, again and again: for now, one that fits. */
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
  };
}

/** Wants what `take` answers. */
export const wholeAnswer: OneAsker<TakeAnswer> = {
  decide: (_limit, _subject, _cost, { atMs, ...outcome }) => ({
    taken: outcome.fits === "now",
    atMs,
    outcomes: [{ ...outcome, windowRemaining: outcome.remaining }],
    receipt: undefined,
    replayed: false,
  }),
  fail(_request, error) {
    throw error;
  },
};
