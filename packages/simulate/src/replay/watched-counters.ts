import { MemoryCounters, type MemoryCountersOptions, StoreUnavailable } from "sluice";
import type { CompiledLimit, OneOutcome, ResolvedLimit, TakeAnswer, TakeOptions } from "sluice/store";

type SeveralArguments = Parameters<MemoryCounters["takeSeveral"]>;
type SeveralAnswer = ReturnType<MemoryCounters["takeSeveral"]>;
type OneArguments = Parameters<MemoryCounters["takeOne"]>;

/** A limit that the latest request was counted by. Reused for the next request. */
export interface AskedLimit {
  limit: CompiledLimit;
  subject: string;
  cost: number;
  /** Whether its policy is in shadow mode. */
  shadow: boolean;
}

/**
 * Counters in memory that remember which limits and subjects the latest request led to. With a `twin`, the same limits are taken
 * from there as well, at the time that its clock shows: a second replay at other times, for the price of the counters alone.
 */
export class WatchedCounters extends MemoryCounters {
  /** Of these only the first `askedCount` belong to the latest request. */
  readonly asked: AskedLimit[] = [];
  askedCount = 0;
  /** Whether these counters let the latest request through, and whether those of the twin did. */
  #passes = true;
  #passesTwin = true;
  readonly #twin: MemoryCounters | undefined;

  constructor(options: MemoryCountersOptions, twin?: MemoryCounters) {
    super(options);
    this.#twin = twin;
  }

  /** Before each request: one that no limit counts leaves none. */
  forgetAsked(): void {
    this.askedCount = 0;
    this.#passes = true;
    this.#passesTwin = true;
  }

  /** Whether the twin allows the request that was just decided. What counters had no part in, it decides alike. */
  allowedByTwin(allowed: boolean): boolean {
    return allowed === this.#passes ? this.#passesTwin : allowed;
  }

  override take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer {
    for (const { limit, subject, cost, group } of limits) this.#note(limit, subject, cost, group > 0);
    if (this.#twin !== undefined) this.#ask((counters) => counters.take(limits, options).taken);
    const answer = super.take(limits, options);
    this.#passes = answer.taken;
    return answer;
  }

  override takeOne(...[limit, windows, subject, cost]: OneArguments): Readonly<OneOutcome> {
    this.#note(limit, subject, cost, false);
    if (this.#twin !== undefined)
      this.#ask((counters) => counters.takeOne(limit, windows, subject, cost).fits === "now");
    const outcome = super.takeOne(limit, windows, subject, cost);
    this.#passes = outcome.fits === "now";
    return outcome;
  }

  override takeSeveral(...[limits, count]: SeveralArguments): SeveralAnswer {
    for (let i = 0; i < count; i++) {
      const { limit, subject, cost } = limits[i]!;
      this.#note(limit, subject, cost, false);
    }
    if (this.#twin !== undefined) this.#ask((counters) => counters.takeSeveral(limits, count).outcome.fits === "now");
    const answer = super.takeSeveral(limits, count);
    this.#passes = answer.outcome.fits === "now";
    return answer;
  }

  /** Counters without room for a subject throw if its policy fails closed. */
  #ask(passes: (twin: MemoryCounters) => boolean): void {
    this.#passes = false;
    this.#passesTwin = false;
    try {
      this.#passesTwin = passes(this.#twin!);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  #note(limit: CompiledLimit, subject: string, cost: number, shadow: boolean): void {
    const place = this.asked[this.askedCount];
    if (place === undefined) this.asked.push({ limit, subject, cost, shadow });
    else {
      place.limit = limit;
      place.subject = subject;
      place.cost = cost;
      place.shadow = shadow;
    }
    this.askedCount += 1;
  }
}
