import { StoreUnavailable } from "sluice";
import { Deadlines, Flight, type LineTime, mayRepeat, retryAtMs, whyLate } from "sluice/internal";
import type { StoreUnavailableReason } from "sluice/store";
import { idempotencyConflict } from "sluice/store";
import { type Script, scripts } from "../scripts.generated.ts";
import { failArrival, settleArrivals } from "./arrival-replies.ts";
import { decodeHead } from "./decode-reply.ts";
import { mostPerCall } from "./encode-call.ts";
import type { GuardedShard } from "./guarded-shard.ts";
import type { LaneOptions } from "./lane-options.ts";
import { nothingAsked, ofItsOwn, tooManyWait } from "./nothing-asked.ts";
import { decodeOperation, encodeOperation } from "./operation-codec.ts";
import { Pending } from "./pending.ts";
import {
  type Answer,
  ArrivalQuestion,
  CountsQuestion,
  type Operation,
  operations,
  type Question,
  questionWeight,
  type Reply,
} from "./question.ts";
import { callScript } from "./script-calls.ts";
import { countAnswer, findCallFailure } from "./shard-figures.ts";
import { isTake, isTemporary, unavailableError, whyUnavailable } from "./unavailable-error.ts";
import { WaitingLine } from "./waiting-line.ts";

export type { AskCounts, LaneOptions, ScriptTuning } from "./lane-options.ts";

/** One script call in flight. */
type CallFlight = Flight<Pending, GuardedShard>;

/** How many questions of one slice are sent before the next slice has its turn. */
const perTurn = 8;

/**
 * Questions about the counters of one slot. Those that arrive in one turn of the event loop travel in one call, up to a
 * weight that keeps the server responsive; a lone question is sent at the end of its turn, unless several calls are in
 * flight. One call leaves per turn. `Deadlines` describes how long questions and calls live.
 */
export class Lane {
  readonly #options: LaneOptions;
  readonly #waiting = new WaitingLine<Pending>();
  readonly #deadlines: Deadlines<Pending, CallFlight>;
  /** Calls in flight that are not overdue. */
  #inFlight = 0;
  /** Whether a call has left in this turn of the event loop, before its end. */
  #hasLeft = false;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#deadlines = new Deadlines(
      laneTime(options),
      {
        waiting: this.#waiting,
        endTurn: () => this.#endTurn(),
        expire: (late) => this.#expire(late),
        mayRetry: ({ sent }) => sent,
        retry: (pendings) => this.#retry(pendings),
        release: (flight, starved) => this.#release(flight, starved),
        wake: () => this.wake(),
        // Its room is free already, and a late answer settles nothing.
        abandon: () => undefined,
      },
      options.stalls,
    );
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Calls in flight that are not overdue. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * The server has `budgetMs` to answer. A caller that waits for less, `patienceMs`, is answered then, which says
   * nothing about the server: neither its breaker nor the other questions of the call are concerned. A caller that
   * waits longer still gets a late answer, and the server may carry the question out until then: the server is blamed
   * all the same, and is not asked again.
   */
  ask(question: Question, budgetMs: number, patienceMs: number = budgetMs): Promise<Answer> {
    const refused = this.#refusal();
    if (refused !== undefined) return Promise.reject(isTake(question) ? refused : ofItsOwn(refused));
    return new Promise((resolve, reject) => {
      const repeatable = question.operation === "peek" || question.id !== undefined;
      this.#wait(
        question,
        questionWeight(question),
        repeatable,
        budgetMs,
        patienceMs,
        resolve as Pending["resolve"],
        reject,
      );
    });
  }

  /** The same for the commonest question, whose asker turns the answer, or its absence, into a value. */
  askArrival(question: ArrivalQuestion, budgetMs: number, patienceMs: number): Promise<unknown> {
    const refused = this.#refusal();
    return new Promise((resolve, reject) => {
      if (refused !== undefined) failArrival(question, refused, resolve, reject);
      else this.#wait(question, 1, false, budgetMs, patienceMs, resolve, reject);
    });
  }

  /** Why nothing can be asked now; undefined if it can. */
  #refusal(): StoreUnavailable | undefined {
    const shard = this.#options.shard();
    if (shard?.shard.ready !== true) {
      this.#options.onSuspect();
      if (!this.#options.starting()) return nothingAsked(whyUnavailable(shard));
    } else if (!shard.closed) return nothingAsked(whyUnavailable(shard));
    return this.#waiting.length < this.#options.maxWaiting ? undefined : tooManyWait();
  }

  #wait(
    question: Question | ArrivalQuestion,
    weight: number,
    repeatable: boolean,
    budgetMs: number,
    patienceMs: number,
    resolve: Pending["resolve"],
    reject: Pending["reject"],
  ): void {
    const deadlines = this.#deadlines;
    const startMs = deadlines.arrivalMs;
    const retryMs = retryAtMs(repeatable, startMs, budgetMs);
    this.#waiting.push(new Pending(question, weight, budgetMs, patienceMs, startMs, retryMs, resolve, reject));
    if (!deadlines.turnIsOpen && this.#options.shard()?.shard.ready === true) this.#flushSoon(startMs);
    deadlines.watch(Math.min(startMs + Math.min(budgetMs, patienceMs), retryMs), startMs);
    this.#leaveIfFull();
  }

  get idle(): boolean {
    return this.#waiting.length === 0 && this.#deadlines.flights.length === 0;
  }

  /** Called when a server is connected, or another one holds the lane. */
  wake(): void {
    if (this.#waiting.length > 0) this.#flushSoon(this.#options.nowMs());
  }

  /** Fails everything that is still open. */
  close(): void {
    const closed = new StoreUnavailable("storage_unavailable", "the counters are closed");
    const { flights } = this.#deadlines;
    this.#deadlines.close();
    for (const pending of this.#waiting) this.#giveUp(pending, closed);
    for (const { pendings } of flights) for (const pending of pendings) this.#giveUp(pending, closed);
    this.#waiting.filter(() => false);
    this.#inFlight = 0;
  }

  #flushSoon(nowMs: number): void {
    if (this.#inFlight < this.#options.maxInFlight) this.#deadlines.endTurnSoon(nowMs);
  }

  #endTurn(): void {
    const hasLeft = this.#hasLeft;
    this.#hasLeft = false;
    if (!hasLeft) this.#send();
    else this.wake();
  }

  /**
   * A full call does not wait for the end of the turn. Only one leaves early: several would be written, carried out and
   * answered together, and the server would be idle meanwhile.
   */
  #leaveIfFull(): void {
    if (this.#hasLeft || !this.#deadlines.turnIsOpen || this.#waiting.length < this.#options.maxCallWeight) return;
    this.#hasLeft = true;
    this.#send();
  }

  /**
   * Sends one call of each operation now and the rest in the next turn: the server works on these while those are
   * written.
   */
  #send(): void {
    const { maxInFlight, maxCallWeight } = this.#options;
    if (this.#inFlight >= maxInFlight) return;
    const shard = this.#options.shard();
    if (shard?.shard.ready !== true || !shard.closed) {
      // Until anything is known, questions for a first connection keep waiting; they have their deadlines.
      if (shard?.closed !== false && this.#options.starting()) return;
      for (const pending of this.#waiting) this.#giveUp(pending, unavailableError(shard, pending));
      this.#waiting.filter(() => false);
      return;
    }
    let weight = 0;
    let count = 0;
    const pendings = this.#waiting.take(perTurn, (pending) => {
      if (pending.settled) return true;
      if (count > 0 && (weight + pending.weight > maxCallWeight || count >= mostPerCall || pending.alone)) return false;
      weight += pending.alone ? maxCallWeight : pending.weight;
      count += 1;
      return true;
    });
    keepOrder(pendings);
    for (const operation of operations) {
      const own = pendings.filter(({ question, settled }) => !settled && question.operation === operation);
      if (own.length > 0) this.#call(shard, operation, own);
      if (own.length === pendings.length) break;
    }
    this.wake();
  }

  #call(shard: GuardedShard, operation: Operation, pendings: readonly Pending[]): void {
    const { slot, counts, nowMs } = this.#options;
    const sentMs = nowMs();
    let patienceMs = Number.POSITIVE_INFINITY;
    let lateMs = Number.POSITIVE_INFINITY;
    for (const pending of pendings) {
      patienceMs = Math.min(patienceMs, pending.budgetMs);
      lateMs = Math.min(lateMs, pending.lateMs);
      pending.sent = true;
    }
    const flight: CallFlight = new Flight(shard, shard.generation, pendings, patienceMs, sentMs);
    this.#deadlines.addFlight(flight);
    this.#inFlight += 1;
    counts.calls += 1;
    counts.questions += pendings.length;
    shard.figures.calls += 1;
    const deadlineMs = shard.clock.at(lateMs);
    const serverNowMs = shard.clock.aheadMs === undefined ? Date.now() : shard.clock.at(sentMs);
    const { names, tune } = this.#options;
    const { keys, args } = encodeOperation(operation, pendings, names, deadlineMs, serverNowMs);
    const script: Script = (tune?.scripts ?? scripts)[operation];
    const whole = tune === undefined ? args : [...args, ...tune.extraArguments()];
    callScript(shard.shard, slot, script, keys, whole, () => {
      counts.loads += 1;
    }).then(
      (reply) => this.#answer(flight, operation, reply, sentMs),
      (error: unknown) => this.#fail(flight, error),
    );
  }

  #answer(flight: CallFlight, operation: Operation, reply: unknown, sentMs: number): void {
    const { counts, nowMs } = this.#options;
    const { peer: shard, pendings } = flight;
    try {
      const head = decodeHead(reply);
      const receivedMs = nowMs();
      shard.clock.learn(head.nowUs / 1000, sentMs, receivedMs);
      countAnswer(shard.figures, receivedMs - sentMs);
      counts.foreign += head.foreign;
      counts.healed += head.healed;
      if (head.late) this.#repeat(pendings);
      else if (operation === "takeArrivals") settleArrivals(pendings, reply, head.nowUs, shard);
      else this.#settle(pendings, decodeOperation(operation, pendings, reply as number[]));
    } catch (error) {
      this.#fail(flight, error);
      return;
    }
    if (!flight.overdue) shard.succeed(flight.generation);
    this.#land(flight);
  }

  #settle(pendings: readonly Pending[], replies: readonly Reply[]): void {
    const outside: Pending[] = [];
    replies.forEach((reply, i) => {
      const pending = pendings[i]!;
      if (pending.settled) return;
      if (reply.kind === "outside") {
        outside.push(pending);
        return;
      }
      pending.settled = true;
      if (reply.kind === "answer") pending.resolve(reply.answer);
      else pending.reject(idempotencyConflict((pending.question as Question).id ?? ""));
    });
    this.#repeat(outside);
  }

  /** Asks again what the server did not carry out, by its clock as it is known by now. */
  #repeat(pendings: readonly Pending[]): void {
    const repeated: Pending[] = [];
    const nowMs = this.#options.nowMs();
    for (const pending of pendings) {
      if (pending.settled) continue;
      if (mayRepeat(pending, nowMs, Math.min(pending.expiresMs, pending.lateMs))) repeated.push(pending);
      else this.#giveUp(pending, new StoreUnavailable(whyLate(pending), undefined, { mayBeDone: pending.retried }));
    }
    this.#waiting.pushFirst(repeated);
  }

  /** Asks again what was not answered within its first attempt. The server may have carried that out. */
  #retry(pendings: readonly Pending[]): void {
    for (const pending of pendings) pending.retried = true;
    this.#options.counts.retries += pendings.length;
    this.#waiting.pushFirst(pendings);
    this.#send();
  }

  #fail(flight: CallFlight, error: unknown): void {
    const { counts, onSuspect, onFailure } = this.#options;
    if (error instanceof Error && error.message.startsWith("TRYAGAIN")) {
      // Some keys of the call have moved with their slot and some have not. Nothing was done; sent one by one, they are
      // found.
      for (const pending of flight.pendings) pending.alone = true;
      this.#repeat(flight.pendings);
      this.#land(flight);
      return;
    }
    const outage = new StoreUnavailable("storage_unavailable", undefined, { cause: error });
    for (const pending of flight.pendings) this.#giveUp(pending, outage);
    if (!flight.overdue) {
      counts.failedCalls += 1;
      flight.peer.figures.failures[findCallFailure(error)] += 1;
      onFailure(flight.peer.shard.name, error);
      // A temporary failure that is reported at once needs no breaker: limits are enforced again as soon as it has
      // passed.
      if (!isTemporary(error)) flight.peer.fail(flight.generation);
      onSuspect();
    }
    this.#land(flight);
  }

  #giveUp(pending: Pending, error: Error): void {
    if (pending.settled) return;
    pending.settled = true;
    const { question, resolve, reject } = pending;
    if (question instanceof ArrivalQuestion) failArrival(question, error, resolve, reject);
    else reject(error);
  }

  /** The call was answered, and there is room for another. */
  #land(flight: CallFlight): void {
    if (this.#deadlines.removeFlight(flight) && !flight.overdue) this.#inFlight -= 1;
    this.wake();
  }

  /** The call was not answered within the shortest budget of its questions. */
  #release({ peer }: CallFlight, starved: boolean): void {
    this.#inFlight -= 1;
    this.#options.counts.failedCalls += 1;
    peer.figures.failures[starved ? "starved" : "timeout"] += 1;
  }

  #expire(late: ReadonlySet<Pending>): void {
    const { counts } = this.#options;
    // One error for all that are late together: it costs more than the check that it ends.
    const errors: Partial<Record<StoreUnavailableReason, StoreUnavailable>> = {};
    for (const pending of late) {
      const why = whyLate(pending);
      if (pending.question.operation !== "lease") counts[why === "process_starved" ? "starved" : "timeouts"] += 1;
      errors[why] ??= new StoreUnavailable(why);
      this.#giveUp(pending, errors[why]);
    }
    this.#waiting.filter(({ settled }) => !settled);
  }
}

/**
 * Questions of several operations leave in several calls, one operation after the other. Those for `takeCounts` go by the general script
 * if others do: they may be about the same counters, and are answered in the order in which they were asked.
 */
function keepOrder(pendings: readonly Pending[]): void {
  if (!pendings.some(({ question }) => question.operation === "take")) return;
  for (const { question } of pendings) if (question instanceof CountsQuestion) question.operation = "take";
}

function laneTime({ nowMs, runDelay }: LaneOptions): LineTime {
  return {
    nowMs,
    schedule: (waitMs, wake) => {
      const timer = setTimeout(wake, waitMs);
      return () => clearTimeout(timer);
    },
    soon: (act) => void setImmediate(act),
    runDelayMs: (atMs) => runDelay.totalMs(atMs),
  };
}
