import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import { joinSubject } from "../subject/join-subject.ts";
import type { CounterStore, LimitOutcome, ResolvedLimit } from "./counter-store.ts";
import { type Hash64, hashJoined, hashText } from "./hash.ts";

/** Requests with more limits or windows go by `take`. */
export const mostLimits = 8;
export const mostWindows = 16;

/**
 * What a counter store in this process may offer on top of `CounterStore`: a quick `take` for requests with a few limits and no
 * further options. A store without it works through `take`.
 *
 * It is faster because everything between the request and the decision is written into objects that are reused for the next
 * request. In return both sides keep to these rules:
 *
 * - The caller asks about the first `count` limits of the list, at most `mostLimits`, of at most `mostWindows` windows in all. All
 *   are enforced (group 0). None can be blocked, has a log, or shares a counter with another, and no policy counts denials. For
 *   such limits the answer is that of `take`, reduced to the limit that speaks.
 * - Once the store has read its clock, it runs no code of the caller's. It keeps nothing of the list.
 * - The outcome is valid until the next call; copy it to keep it.
 */
export interface SeveralTakes {
  takeSeveral(limits: readonly AskedAgain[], count: number): Readonly<SeveralOutcome>;
}

/** Whether windows are for `SeveralTakes`. Logs and values are changed where they are; a limit without windows is for tiers of other subjects. */
export function areTaken(windows: readonly CompiledWindow[]): boolean {
  for (let i = 0; i < windows.length; i++) {
    const { kind } = windows[i]!;
    if (kind === "log" || kind === "distinct") return false;
  }
  return windows.length > 0;
}

/** One limit of a request; reused for the next request. */
export class AskedAgain implements ResolvedLimit {
  limit: CompiledLimit;
  windows: readonly CompiledWindow[];
  cost = 1;
  readonly group = 0;
  /** The subject; or, if there is a second value, the first of two that make it. */
  first = "";
  second: string | undefined = undefined;

  constructor(limit: CompiledLimit) {
    this.limit = limit;
    this.windows = limit.windows;
  }

  get subject(): string {
    return this.second === undefined ? this.first : joinSubject([this.first, this.second]);
  }

  /** The hash of the subject, without building the subject if possible. */
  hashSubject(into: Hash64): void {
    if (this.second === undefined) hashText(this.first, into);
    else if (!hashJoined(this.first, this.second, into)) hashText(this.subject, into);
  }
}

/** The outcome of a take from several limits, as reported by the limit that decides. */
export interface SeveralOutcome {
  /** The index of the limit that decides. */
  speaking: number;
  outcome: LimitOutcome;
  /** The least that any of the limits has left. */
  remaining: number;
  atMs: number;
}

/** The store itself, if it offers takes from several limits. */
export function findSeveralTakes(store: CounterStore): SeveralTakes | undefined {
  const { takeSeveral } = store as CounterStore & Partial<SeveralTakes>;
  return typeof takeSeveral === "function" ? (store as CounterStore & SeveralTakes) : undefined;
}
