import type { Decision } from "sluice";
import { outageDecision } from "sluice/internal";
import type { StoreUnavailableReason } from "sluice/store";
import {
  type Exchange,
  ExchangeError,
  type ExchangeEvents,
  type FailedBecause,
  type QuestionKind,
  type Reply,
  type Sending,
  type SentQuestion,
} from "../exchange.ts";

/** A batch as handed to an exchange, for a test to answer or not. */
export interface ScriptedBatch {
  readonly kind: QuestionKind;
  readonly questions: readonly SentQuestion[];
  /** The values of dimension `user`, in order. */
  readonly users: readonly (string | undefined)[];
  abandoned: boolean;
  /** Allows everything, or replies as given. */
  answer(replies?: readonly Reply[]): void;
  /** The server did nothing about any of it. */
  turnAway(reason: StoreUnavailableReason): void;
  fail(because: FailedBecause): void;
}

/** An exchange that a test plays: shows how the line handles events, without a network. */
export class ScriptedExchange implements Exchange {
  readonly maxInFlight: number;
  readonly batches: ScriptedBatch[] = [];
  readonly events: ExchangeEvents;
  /** Whether it is reachable; a promise resolves later. */
  reachable: boolean | Promise<void> = true;
  opened = 0;
  closed = 0;

  constructor(events: ExchangeEvents, maxInFlight = 32) {
    this.events = events;
    this.maxInFlight = maxInFlight;
  }

  async open(): Promise<void> {
    this.opened += 1;
    if (typeof this.reachable !== "boolean") await this.reachable;
    else if (!this.reachable) throw new ExchangeError("not_asked", "ECONNREFUSED");
  }

  send(kind: QuestionKind, questions: readonly SentQuestion[]): Sending {
    const replies = new Promise<readonly Reply[]>((resolve, reject) => {
      this.batches.push({
        kind,
        questions,
        users: questions.map(({ question }) => ("request" in question ? question.request.dimensions?.user : undefined)),
        abandoned: false,
        answer: (given = questions.map(({ question }) => ({ kind: "answer", value: usualAnswer(question.kind) }))) =>
          resolve(given),
        turnAway: (reason) => resolve(questions.map(() => ({ kind: "elsewhere", reason }))),
        fail: (because) => reject(new ExchangeError(because, because)),
      });
    });
    const batch = this.batches.at(-1)!;
    return {
      replies,
      abandon: () => {
        batch.abandoned = true;
      },
    };
  }

  close(): void {
    this.closed += 1;
    for (const batch of this.batches) batch.fail("lost");
  }
}

export const allowed: Decision = {
  ...outageDecision({}, true, "storage_timeout"),
  reason: "within_limits",
  degraded: undefined,
};

function usualAnswer(kind: QuestionKind): Decision | boolean | number | undefined {
  if (kind === "check") return allowed;
  if (kind === "reset") return 1;
  return kind === "give" ? true : undefined;
}
