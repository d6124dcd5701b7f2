import type { CheckRequest, Decision, Receipt, SettledGrant, SluiceError, StoreUnavailableReason } from "sluice";

/** What is asked of a server. Checks travel together, everything else alone. */
export type Question =
  | { readonly kind: "check"; readonly request: CheckRequest }
  | { readonly kind: "charge"; readonly request: CheckRequest }
  | { readonly kind: "give"; readonly receipt: Receipt }
  | { readonly kind: "reset"; readonly request: CheckRequest }
  | LeaseQuestion;

/** Asks for units to decide by, reports how the last ones were spent, or both. Of `request` only the counters matter. */
export interface LeaseQuestion {
  readonly kind: "lease";
  readonly request: CheckRequest;
  readonly want: number;
  readonly settled: SettledGrant | undefined;
}

/** What was granted, and how long that is good for, counted from before it was asked for. */
export interface LeaseReply {
  readonly granted: number;
  readonly epoch: number;
  /** Of what was kept: not to be spent. */
  readonly forgotten: number;
  readonly leaseMs: number;
  readonly staleMs: number;
  /** What one check takes that says no cost of its own. */
  readonly cost: number;
  /** How the counters stood after the grant. */
  readonly decision: Decision;
}

export type QuestionKind = Question["kind"];

/** Whether asking twice does the same as asking once. */
export function isRepeatable(question: Question): boolean {
  if (question.kind === "reset") return true;
  return question.kind === "check" && (question.request.preview === true || question.request.id !== undefined);
}

/** How much of `maxBatchCharacters` a question takes. */
export function countCharacters(question: Question): number {
  if (question.kind === "give") return question.receipt.length;
  const { dimensions, domain = "", id = "", policies = [] } = question.request;
  let characters = domain.length + id.length;
  for (const policy of policies) characters += policy.length;
  for (const name in dimensions) characters += name.length + dimensions[name]!.length;
  return characters;
}

/** A question on its way. */
export interface SentQuestion {
  readonly question: Question;
  /** How long the server may take to find the answer: whole milliseconds, less than the caller waits. */
  readonly withinMs: number;
}

/** The decision of a check, whether something was given back, how many counters were reset, a lease; nothing for a charge. */
export type AnswerValue = Decision | LeaseReply | boolean | number | undefined;

/** What a server says to one question. */
export type Reply =
  | { readonly kind: "answer"; readonly value: AnswerValue }
  /** The caller got something wrong. */
  | { readonly kind: "refused"; readonly error: SluiceError }
  /** The server did nothing about it, and would rather not: another one may be asked. */
  | { readonly kind: "elsewhere"; readonly reason: StoreUnavailableReason }
  /** It went wrong there, and nobody knows how far it got. */
  | { readonly kind: "failed"; readonly reason: StoreUnavailableReason };

/** Why questions that were handed to an exchange got no reply. */
export type FailedBecause =
  /** None of them was carried out, and none will be: they may be asked again, of anybody. */
  | "not_asked"
  /** They may have been carried out. */
  | "lost"
  /** Whoever we are may not ask this. None of them was carried out. */
  | "refused";

export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  readonly because: FailedBecause;
  /** What callers are told, where they were refused. */
  readonly refusal: SluiceError | undefined;

  constructor(because: FailedBecause, message: string, refusal?: SluiceError) {
    super(message);
    this.because = because;
    this.refusal = refusal;
  }
}

/** A batch that is on its way. */
export interface Sending {
  /** In the order of the questions. Rejects with an `ExchangeError`, for all of them. */
  readonly replies: Promise<readonly Reply[]>;
  /** Nobody waits for it any more: what it holds is let go of, and `replies` may stay open. */
  abandon(): void;
}

/**
 * A way to ask one server. Nothing is open before `open`, and nothing after `close`. No socket keeps the process alive for long when
 * nobody waits.
 *
 * An exchange has no deadline of its own for questions: who asks gives up by himself.
 */
export interface Exchange {
  /** How many batches of one kind may be on their way at once. */
  readonly maxInFlight: number;
  /**
   * Reaches the server and finds out whether it wants to be asked. Rejects where it does not, or not within that time. Asked
   * again after a failure, or when the exchange told that it has ended, it begins afresh.
   */
  open(withinMs: number): Promise<void>;
  /** Up to `maxBatch` checks, or one question of another kind. Does not throw. */
  send(kind: QuestionKind, questions: readonly SentQuestion[]): Sending;
  /** Ends everything at once. What is on its way is lost. It may be opened again. */
  close(): void;
}

export interface ExchangeEvents {
  /** The server leaves, or the connection is gone: nothing more should be sent until it was opened again. */
  onEnd(why: string): void;
}

/** The most that travels together. */
export const maxBatch = 256;
/** And the most characters of it, so that a batch stays below what servers take, with six bytes for each in JSON at worst. */
export const maxBatchCharacters: number = 128 * 1024;
