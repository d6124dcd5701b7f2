import { StoreUnavailable } from "sluice";
import { mostExcusedMs, type Stalls, whyLate } from "sluice/internal";
import type { LimitOutcome, TakeOptions } from "sluice/store";
import { outcomesFromPlan } from "sluice/store";
import { decodeRecords, outcomesBefore } from "./ask/decode-reply.ts";
import { newName } from "./ask/new-name.ts";
import { type Answer, ArrivalsQuestion, createQuestion, type Question } from "./ask/question.ts";
import type { RedisHolds } from "./holds.ts";
import type { Receipts } from "./receipts.ts";
import type { Sites } from "./sites.ts";
import type { Part, PartAsker } from "./take-across.ts";
import { within } from "./topology/within.ts";
import { areArrivals } from "./which-script.ts";

/** How much longer than a request takes at most its internal receipts are kept. */
const momentMs = 5000;

export interface PartTakesOptions {
  readonly sites: Sites;
  readonly receipts: Receipts;
  readonly holds: RedisHolds;
  /** Stalls of this process, as far as they were noticed. */
  readonly stalls: Stalls;
  readonly options: TakeOptions | undefined;
  /** How long the servers have, and how long the caller waits. */
  readonly budgetMs: number;
  readonly waitMs: number;
}

/** Asks the parts of one request, all within its deadline. */
export class PartTakes implements PartAsker {
  readonly #asked: PartTakesOptions;
  readonly #startMs = performance.now();
  readonly #stalledBeforeMs: number;

  constructor(asked: PartTakesOptions) {
    this.#asked = asked;
    this.#stalledBeforeMs = asked.stalls.totalMs;
  }

  take(part: Part, isLast: boolean): Promise<Answer> {
    const { options, budgetMs, sites } = this.#asked;
    const wantsReceipt = options?.receipt === true;
    // Whether the rest fits is known in a moment; a caller's receipt is valid for longer.
    const heldMs = budgetMs + momentMs;
    if (options?.id === undefined && !wantsReceipt && options?.record !== true && areArrivals(part.limits))
      return this.#ask(part, new ArrivalsQuestion(part.limits, isLast ? 0 : heldMs));
    const receipt = isLast && !wantsReceipt ? undefined : newName();
    const asked = createQuestion("take", part.limits, options, receipt);
    const place = sites.siteNumber(part.lane.site);
    const idScope = place === 0 && part.group === 0 ? "" : `${place}.${part.group}`;
    return this.#ask(part, { ...asked, idScope, receiptLifeMs: wantsReceipt ? undefined : heldMs });
  }

  peek(part: Part): Promise<Answer> {
    return this.#ask(part, createQuestion("peek", part.limits, this.#asked.options));
  }

  before({ limits }: Part, { held, plan }: Answer): readonly LimitOutcome[] {
    return held === undefined ? outcomesFromPlan(limits, plan!, false) : outcomesBefore(limits, held);
  }

  recordsBefore({ limits }: Part, { numbers, atMs }: Answer): Answer["records"] {
    const { options } = this.#asked;
    if (options?.record !== true) return undefined;
    return decodeRecords(createQuestion("take", limits, options), numbers, 0, atMs, () => false);
  }

  async give({ lane, limits }: Part, { receipt, replayed, held }: Answer): Promise<void> {
    const { receipts, holds, options } = this.#asked;
    const whole = receipts.render(lane, receipt);
    // What an earlier attempt was allowed stays allowed.
    if ((whole === undefined && held === undefined) || replayed) return;
    const giveWhole = (): Promise<boolean> =>
      options?.holdMs === undefined ? receipts.giveOne(whole!) : holds.undo(lane.site, lane, receipt!);
    // A part that cannot be given back stays charged; the request was denied or failed all the same. Giving back
    // continues beyond the deadline, at which the caller is answered.
    const giving = (held === undefined ? giveWhole() : receipts.giveHeld(lane, limits, held)).catch(() => false);
    const leftMs = Math.max(this.#expiresMs() - performance.now(), 1);
    await within(giving, leftMs).catch(() => false);
  }

  #ask(part: Part, question: Question): Promise<Answer> {
    const { budgetMs, waitMs } = this.#asked;
    const leftMs = this.#expiresMs() - performance.now();
    if (leftMs <= 0) throw new StoreUnavailable(whyLate({ excusedMs: this.#excusedMs(), patienceMs: waitMs }));
    return part.lane.lane.ask(question, leftMs + budgetMs - waitMs, leftMs);
  }

  #expiresMs(): number {
    return this.#startMs + this.#asked.waitMs + this.#excusedMs();
  }

  /** Time during which this process did not run moves the deadline of the whole request as it does that of a part. */
  #excusedMs(): number {
    return Math.min(this.#asked.stalls.totalMs - this.#stalledBeforeMs, mostExcusedMs);
  }
}
