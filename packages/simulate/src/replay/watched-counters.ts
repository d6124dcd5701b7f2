import { MemoryCounters } from "sluice";
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

/** Counters in memory that remember which limits and subjects the latest request led to. */
export class WatchedCounters extends MemoryCounters {
  /** Of these only the first `askedCount` belong to the latest request. */
  readonly asked: AskedLimit[] = [];
  askedCount = 0;

  /** Before each request: one that no limit counts leaves none. */
  forgetAsked(): void {
    this.askedCount = 0;
  }

  override take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer {
    for (const { limit, subject, cost, group } of limits) this.#note(limit, subject, cost, group > 0);
    return super.take(limits, options);
  }

  override takeOne(...[limit, windows, subject, cost]: OneArguments): Readonly<OneOutcome> {
    this.#note(limit, subject, cost, false);
    return super.takeOne(limit, windows, subject, cost);
  }

  override takeSeveral(...[limits, count]: SeveralArguments): SeveralAnswer {
    for (let i = 0; i < count; i++) {
      const { limit, subject, cost } = limits[i]!;
      this.#note(limit, subject, cost, false);
    }
    return super.takeSeveral(limits, count);
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
