import type { SluiceError } from "sluice";
import { Flight, type PendingQuestion } from "sluice/internal";
import type { StoreUnavailableReason } from "sluice/store";
import type { AnswerValue, Question, QuestionKind, Sending } from "./exchange.ts";
import type { GuardedAddress } from "./guarded-address.ts";

/** How a question ended. */
export type Outcome =
  | { readonly kind: "answer"; readonly value: AnswerValue }
  | { readonly kind: "refused"; readonly error: SluiceError }
  | Unanswered;

/** No server was available, or none answered. */
export interface Unanswered {
  readonly kind: "unanswered";
  readonly reason: StoreUnavailableReason;
  /** A server may have carried it out anyway. */
  readonly mayBeDone: boolean;
}

/** A question whose answer a caller waits for. */
export interface Pending extends PendingQuestion {
  readonly question: Question;
  readonly characters: number;
  readonly settle: (outcome: Outcome) => void;
  sentTo: GuardedAddress | undefined;
  /** Whether it waits to be sent, and how many batches in flight it is in. */
  waits: boolean;
  inFlight: number;
}

/** Questions that were sent to one server together, and are not answered. */
export class Batch extends Flight<Pending, GuardedAddress> {
  readonly kind: QuestionKind;
  readonly sending: Sending;

  constructor(
    address: GuardedAddress,
    generation: number,
    pendings: readonly Pending[],
    patienceMs: number,
    startMs: number,
    sending: Sending,
  ) {
    super(address, generation, pendings, patienceMs, startMs);
    this.kind = pendings[0]!.question.kind;
    this.sending = sending;
  }
}

/** Whether another server has it, or is about to get it, and may still answer. */
export function mayStillBeAnswered({ waits, inFlight }: Pending): boolean {
  return waits || inFlight > 0;
}
