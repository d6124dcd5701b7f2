import type { ArrivalQuestion, Question } from "./question.ts";

/** A question that somebody waits for the answer of. */
export class Pending {
  readonly question: Question | ArrivalQuestion;
  readonly weight: number;
  readonly budgetMs: number;
  readonly patienceMs: number;
  readonly startMs: number;
  /** When it is given up. Moves only by the time that this process does not run meanwhile, a second at most. */
  expiresMs: number;
  /** Until when the server may still carry it out; moves with it. */
  lateMs: number;
  excusedMs = 0;
  /** When it is asked again, if that cannot charge twice. */
  retryMs: number;
  sent = false;
  settled = false;
  /** It was asked a second time without an answer to the first, which may have been carried out. */
  retried = false;
  /** How often it was asked anew because the server said that nothing was done. */
  repeats = 0;
  /** It travels in a call of its own, because its slot is on the move. */
  alone = false;
  /** With an answer, or with what the asker of an arrival makes of one. */
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
    this.lateMs = startMs + Math.max(budgetMs, patienceMs);
    this.retryMs = retryMs;
    this.resolve = resolve;
    this.reject = reject;
  }
}
