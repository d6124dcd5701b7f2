import type { PendingQuestion } from "sluice/internal";
import type { ArrivalQuestion, Question } from "./question.ts";

/** A question whose answer a caller waits for. `Deadlines` moves its deadlines. */
export class Pending implements PendingQuestion {
  readonly question: Question | ArrivalQuestion;
  readonly weight: number;
  readonly budgetMs: number;
  readonly patienceMs: number;
  readonly startMs: number;
  expiresMs: number;
  excusedMs = 0;
  retryMs: number;
  sent = false;
  settled = false;
  /** It was asked a second time without an answer to the first, which may have been carried out. */
  retried = false;
  /** How often it was asked again because the server said that nothing was done. */
  repeats = 0;
  /** It travels in a separate call, because its slot is on the move. */
  alone = false;
  /** Called with an answer, or with what the asker of an arrival makes of one. */
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;

  constructor(
    question: Question | ArrivalQuestion,
    weight: number,
    budgetMs: number,
    patienceMs: number,
    startMs: number,
    retryMs: number,
    resolve: (answer: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.question = question;
    this.weight = weight;
    this.budgetMs = budgetMs;
    this.patienceMs = patienceMs;
    this.startMs = startMs;
    this.expiresMs = startMs + patienceMs;
    this.retryMs = retryMs;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** Until when the server may still carry it out; moves with `expiresMs`. */
  get lateMs(): number {
    return this.startMs + Math.max(this.budgetMs, this.patienceMs) + this.excusedMs;
  }
}
