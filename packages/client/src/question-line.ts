import { Deadlines, mayRepeat, retryAtMs, whyLate } from "sluice/internal";
import { AddressPool } from "./address-pool.ts";
import { Batch, mayStillBeAnswered, type Outcome, type Pending, type Unanswered } from "./batch.ts";
import {
  countCharacters,
  ExchangeError,
  isRepeatable,
  maxBatch,
  maxBatchCharacters,
  type Question,
  type Reply,
} from "./exchange.ts";
import type { GuardedAddress } from "./guarded-address.ts";
import type { RemoteTime } from "./remote-time.ts";
import { WaitingGroups } from "./waiting-groups.ts";

export interface QuestionLineOptions {
  readonly addresses: readonly GuardedAddress[];
  readonly time: RemoteTime;
  /** How long a server may leave a batch unanswered before that is held against it, even if its callers wait for less. */
  readonly patienceMs: number;
  /** How many questions may wait to be sent. */
  readonly maxWaiting: number;
}

export interface LineStats {
  /** Questions that were sent, repeated ones each time, and their batches. */
  readonly sent: number;
  readonly batches: number;
  readonly repeated: number;
  readonly waiting: number;
  readonly unanswered: number;
}

/** The server gets this share of the time, so that its own answer to an outage arrives in time. */
const serverShare = 0.8;

/**
 * Questions to any of several servers. Questions of one turn of the event loop travel together, to the ready server
 * that has the fewest unanswered questions; equal servers take turns. A question belongs to no server until it is sent,
 * so that a failing server affects only the questions that it was sent. A lost question is repeated only if that cannot
 * charge twice. `Deadlines` describes how long questions and batches live.
 */
export class QuestionLine {
  readonly #addresses: AddressPool;
  readonly #time: RemoteTime;
  readonly #patienceMs: number;
  readonly #maxWaiting: number;
  readonly #waiting = new WaitingGroups<Pending>();
  readonly #deadlines: Deadlines<Pending, Batch>;
  /** Questions that are not settled. */
  #openCount = 0;
  #closed = false;
  #sent = 0;
  #batches = 0;
  #repeated = 0;

  constructor({ addresses, time, patienceMs, maxWaiting }: QuestionLineOptions) {
    this.#addresses = new AddressPool(addresses);
    this.#time = time;
    this.#patienceMs = patienceMs;
    this.#maxWaiting = maxWaiting;
    const { clock, schedule, soon } = time;
    this.#deadlines = new Deadlines(
      { nowMs: () => clock.nowMs(), schedule, soon },
      {
        waiting: this.#waiting,
        endTurn: () => this.#flush(),
        expire: (late) => this.#expire(late),
        mayRetry: ({ inFlight, waits, sentTo }) => inFlight > 0 && !waits && this.#addresses.hasOther(sentTo),
        retry: (pendings) => {
          for (const pending of pendings) this.#repeat(pending);
        },
        release: ({ peer, kind }) => {
          peer.inFlight[kind] -= 1;
        },
        wake: () => this.wake(),
        abandon: (batch) => this.#abandon(batch),
      },
    );
  }

  get stats(): LineStats {
    return {
      sent: this.#sent,
      batches: this.#batches,
      repeated: this.#repeated,
      waiting: this.#waiting.length,
      unanswered: this.#addresses.unanswered,
    };
  }

  /** Settles once, and before it returns only if no server is available. */
  ask(question: Question, budgetMs: number, settle: (outcome: Outcome) => void): void {
    if (this.#closed || !this.#addresses.approach()) {
      settle(unavailable);
      return;
    }
    if (this.#waiting.length >= this.#maxWaiting) {
      settle(overloaded);
      return;
    }
    const deadlines = this.#deadlines;
    const nowMs = deadlines.arrivalMs;
    const expiresMs = nowMs + budgetMs;
    const retryMs = retryAtMs(isRepeatable(question), nowMs, budgetMs);
    this.#openCount += 1;
    this.#push({
      question,
      characters: countCharacters(question),
      patienceMs: budgetMs,
      settle,
      startMs: nowMs,
      expiresMs,
      retryMs,
      excusedMs: 0,
      sentTo: undefined,
      waits: false,
      inFlight: 0,
      repeats: 0,
      settled: false,
    });
    deadlines.endTurnSoon(nowMs);
    deadlines.watch(Math.min(expiresMs, retryMs), nowMs);
  }

  /** A server is ready. */
  wake(): void {
    if (this.#waiting.length > 0) this.#deadlines.endTurnSoon(this.#time.clock.nowMs());
  }

  /** A server was put aside. If it was the last one, waiting questions are answered now. */
  failWaiting(): void {
    if (this.#waiting.length === 0 || this.#addresses.approach()) return;
    for (const pending of this.#waiting.takeAll()) this.#settle(pending, unavailable);
  }

  /** Gives up everything that is still open. */
  close(): void {
    this.#closed = true;
    const { flights } = this.#deadlines;
    this.#deadlines.close();
    for (const pending of this.#waiting.takeAll()) this.#settle(pending, unavailable);
    for (const { pendings, sending } of flights) {
      sending.abandon();
      for (const pending of pendings) this.#settle(pending, lost);
    }
  }

  #push(pending: Pending): void {
    this.#waiting.push(pending);
    pending.waits = true;
  }

  #settle(pending: Pending, outcome: Outcome): void {
    if (pending.settled) return;
    pending.settled = true;
    this.#openCount -= 1;
    this.#rest();
    pending.settle(outcome);
  }

  /** If no caller waits and nothing is in flight, no timer keeps the process alive. */
  #rest(): void {
    if (this.#openCount === 0 && this.#deadlines.flights.length === 0) this.#deadlines.rest();
  }

  #flush(): void {
    this.#waiting.takeFromEach((pendings) => {
      let from = 0;
      while (from < pendings.length) {
        const { question, sentTo } = pendings[from]!;
        const address = this.#addresses.choose(question.kind, sentTo);
        if (address === undefined) break;
        from = this.#sendFrom(pendings, from, address);
      }
      return from;
    });
  }

  /** Sends one batch, and returns where the next one begins. */
  #sendFrom(pendings: readonly Pending[], from: number, address: GuardedAddress): number {
    const batch: Pending[] = [];
    const most = pendings[from]!.question.kind === "check" ? maxBatch : 1;
    let characters = 0;
    let next = from;
    for (; next < pendings.length && batch.length < most; next++) {
      const pending = pendings[next]!;
      if (pending.settled) continue;
      characters += pending.characters;
      if (batch.length > 0 && characters > maxBatchCharacters) break;
      batch.push(pending);
    }
    if (batch.length > 0) this.#send(batch, address);
    return next;
  }

  #send(pendings: readonly Pending[], address: GuardedAddress): void {
    const nowMs = this.#time.clock.nowMs();
    const { kind } = pendings[0]!.question;
    let leastBudgetMs = Number.POSITIVE_INFINITY;
    const questions = pendings.map((pending) => {
      pending.sentTo = address;
      pending.waits = false;
      pending.inFlight += 1;
      leastBudgetMs = Math.min(leastBudgetMs, pending.patienceMs);
      const withinMs = Math.max(1, Math.floor((pending.expiresMs - nowMs) * serverShare));
      return { question: pending.question, withinMs };
    });
    const { generation } = address;
    const sending = address.send(kind, questions);
    const patienceMs = Math.max(leastBudgetMs, this.#patienceMs);
    const batch = new Batch(address, generation, pendings, patienceMs, nowMs, sending);
    this.#deadlines.addFlight(batch);
    address.inFlight[kind] += 1;
    address.unanswered += pendings.length;
    this.#sent += pendings.length;
    this.#batches += 1;
    sending.replies.then(
      (replies) => this.#answer(batch, replies),
      (error: unknown) => this.#fail(batch, error),
    );
  }

  #answer(batch: Batch, replies: readonly Reply[]): void {
    const { peer: address, generation, pendings } = batch;
    if (replies.length !== pendings.length) {
      this.#fail(batch, new ExchangeError("lost", `${replies.length} replies to ${pendings.length} questions`));
      return;
    }
    if (!batch.overdue) address.succeed(generation);
    this.#land(batch);
    for (let i = 0; i < replies.length; i++) this.#reply(pendings[i]!, replies[i]!);
  }

  #reply(pending: Pending, reply: Reply): void {
    if (reply.kind === "answer" || reply.kind === "refused") this.#settle(pending, reply);
    else if (mayStillBeAnswered(pending)) return;
    // A question that a server declines goes to another, once; if there is no other, it is not sent into the same
    // refusal again.
    else if (reply.kind === "elsewhere" && pending.repeats === 0 && this.#addresses.hasOther(pending.sentTo))
      this.#repeat(pending);
    else this.#settle(pending, { kind: "unanswered", reason: reply.reason, mayBeDone: reply.kind === "failed" });
  }

  #fail(batch: Batch, error: unknown): void {
    const because = error instanceof ExchangeError ? error.because : "lost";
    const refusal = error instanceof ExchangeError ? error.refusal : undefined;
    if (because === "lost" && !batch.overdue) batch.peer.fail(batch.generation);
    this.#land(batch);
    for (const pending of batch.pendings) {
      if (refusal !== undefined) this.#settle(pending, { kind: "refused", error: refusal });
      else if (mayStillBeAnswered(pending)) continue;
      else if (because === "not_asked" || isRepeatable(pending.question)) this.#repeat(pending);
      else this.#settle(pending, lost);
    }
  }

  /** Asks once more, if that is safe and there is time. */
  #repeat(pending: Pending): void {
    if (pending.settled) return;
    const nowMs = this.#time.clock.nowMs();
    if (!mayRepeat(pending, nowMs) || !this.#addresses.approach()) {
      this.#settle(pending, unavailable);
      return;
    }
    this.#repeated += 1;
    this.#push(pending);
    this.#deadlines.endTurnSoon(nowMs);
  }

  /** It was answered, or failed, so there is room for another batch. */
  #land(batch: Batch): void {
    if (!this.#deadlines.removeFlight(batch)) return;
    if (!batch.overdue) batch.peer.inFlight[batch.kind] -= 1;
    this.#forget(batch);
    this.wake();
  }

  #forget({ peer, pendings }: Batch): void {
    for (const pending of pendings) pending.inFlight -= 1;
    peer.unanswered -= pendings.length;
    this.#rest();
  }

  #abandon(batch: Batch): void {
    batch.sending.abandon();
    this.#forget(batch);
  }

  #expire(late: ReadonlySet<Pending>): void {
    for (const pending of late)
      this.#settle(pending, { kind: "unanswered", reason: whyLate(pending), mayBeDone: true });
    this.#waiting.dropSettled();
  }
}

const unavailable: Unanswered = { kind: "unanswered", reason: "storage_unavailable", mayBeDone: false };
const lost: Unanswered = { ...unavailable, mayBeDone: true };
const overloaded: Unanswered = { kind: "unanswered", reason: "storage_overloaded", mayBeDone: false };
