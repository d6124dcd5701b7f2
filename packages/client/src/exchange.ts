import type { CheckRequest, Decision, SluiceError } from "sluice";
import type { Receipt, SettledGrant, StoreUnavailableReason } from "sluice/store";

/** A question to a server. Checks travel together, everything else alone. */
export type Question =
  | { readonly kind: "check"; readonly request: CheckRequest }
  | { readonly kind: "charge"; readonly request: CheckRequest }
  | { readonly kind: "give"; readonly receipt: Receipt }
  | { readonly kind: "reset"; readonly request: CheckRequest }
  | LeaseQuestion;

/** Asks for units to spend, reports how the last ones were spent, or both. Only the counters of `request` matter. */
export interface LeaseQuestion {
  readonly kind: "lease";
  readonly request: CheckRequest;
  readonly want: number;
  readonly settled: SettledGrant | undefined;
}

/** A grant, and how long it is good for, counted from before it was requested. */
export interface LeaseReply {
  readonly granted: number;
  readonly epoch: number;
  /** The part of the kept units that must not be spent. */
  readonly forgotten: number;
  readonly leaseMs: number;
  readonly staleMs: number;
  /** The cost of a check that names none. */
  readonly cost: number;
  /** The state of the counters after the grant. */
  readonly decision: Decision;
}

export type QuestionKind = Question["kind"];

/** Whether asking twice has the same effect as asking once. */
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

/** A question in flight. */
export interface SentQuestion {
  readonly question: Question;
  /** How long the server may take for the answer: whole milliseconds, less than the caller waits. */
  readonly withinMs: number;
}

/**
 * The decision of a check, whether something was given back, how many counters were reset, a lease; nothing for a
 * charge.
 */
export type AnswerValue = Decision | LeaseReply | boolean | number | undefined;

/** A server's reply to one question. */
export type Reply =
  | { readonly kind: "answer"; readonly value: AnswerValue }
  /** The caller made a mistake. */
  | { readonly kind: "refused"; readonly error: SluiceError }
  /** The server did nothing about it, and declines to: another one may be asked. */
  | { readonly kind: "elsewhere"; readonly reason: StoreUnavailableReason }
  /** It failed there, and may have been partly carried out. */
  | { readonly kind: "failed"; readonly reason: StoreUnavailableReason };

/** Why questions that were handed to an exchange got no reply. */
export type FailedBecause =
  /** None of them was or will be carried out: they may be sent again, to any server. */
  | "not_asked"
  /** They may have been carried out. */
  | "lost"
  /** This client may not ask this. None of them was carried out. */
  | "refused";

export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  readonly because: FailedBecause;
  /** The error for callers, if they were refused. */
  readonly refusal: SluiceError | undefined;

  constructor(because: FailedBecause, message: string, refusal?: SluiceError) {
    super(message);
    this.because = because;
    this.refusal = refusal;
  }
}

/** A batch in flight. */
export interface Sending {
  /** In the order of the questions. Rejects with an `ExchangeError`, for all of them. */
  readonly replies: Promise<readonly Reply[]>;
  /** The answer is no longer needed: its resources are released, and `replies` may stay open. */
  abandon(): void;
}

/**
 * A connection to one server. Nothing is open before `open`, and nothing after `close`. An idle socket does not keep
 * the process alive for long.
 *
 * An exchange has no deadline for questions: the caller has one.
 */
export interface Exchange {
  /** How many batches of one kind may be in flight at once. */
  readonly maxInFlight: number;
  /**
   * Connects and finds out whether the server accepts questions. Rejects if it does not, or not within that time.
   * Called again after a failure, or when the exchange reported its end, it starts over.
   */
  open(withinMs: number): Promise<void>;
  /** Up to `maxBatch` checks, or one question of another kind. Does not throw. */
  send(kind: QuestionKind, questions: readonly SentQuestion[]): Sending;
  /** Ends everything at once. Batches in flight are lost. It may be opened again. */
  close(): void;
}

export interface ExchangeEvents {
  /** The server is leaving, or the connection is gone: send nothing more until it is opened again. */
  onEnd(why: string): void;
}

/** The most questions that travel together. */
export const maxBatch = 256;
/**
 * The most characters in a batch, so that it stays below what servers accept, with up to six bytes for each in JSON.
 */
export const maxBatchCharacters: number = 128 * 1024;
