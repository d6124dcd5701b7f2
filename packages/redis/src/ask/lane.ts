import { type OneOutcome, StoreUnavailable, type StoreUnavailableReason } from "sluice";
import { createOneOutcome, excuse, idempotencyConflict, isStarved, Stalls, whyLate } from "sluice/store";
import type { KeyNames } from "../place/key-names.ts";
import { type Script, scripts } from "../scripts.generated.ts";
import { decodeLeases } from "./decode-lease.ts";
import {
  decodeAheads,
  decodeArrival,
  decodeArrivals,
  decodeBlocks,
  decodeCharges,
  decodeHead,
  decodeMarks,
  decodePlan,
} from "./decode-reply.ts";
import { type Call, encodeArrivals, encodeBlocks, encodePlan, mostPerCall } from "./encode-call.ts";
import { encodeLeases } from "./encode-lease.ts";
import { breakerIsOpen, type GuardedShard, type NowMs } from "./guarded-shard.ts";
import { nothingAsked, ofItsOwn, tooManyWait } from "./nothing-asked.ts";
import { Pending } from "./pending.ts";
import {
  type Answer,
  type AnyArrivals,
  ArrivalQuestion,
  type Held,
  type Operation,
  operations,
  type Question,
  type Reply,
  weightOf,
} from "./question.ts";
import type { RunDelay } from "./run-delay.ts";
import { callScript } from "./script-calls.ts";
import { callFailureOf, countAnswer } from "./shard-figures.ts";
import { WaitingLine } from "./waiting-line.ts";

/** What has happened, in numbers that only grow. */
export interface AskCounts {
  /** Script calls sent, and the questions in them. */
  calls: number;
  questions: number;
  failedCalls: number;
  /** Questions that were not answered in time, but for leases, which nobody waits for. */
  timeouts: number;
  /** The same, because this process did not run meanwhile. */
  starved: number;
  /** Questions sent a second time, because that could not charge twice. */
  retries: number;
  /** Scripts sent in full, because a server did not know their digest. */
  loads: number;
  /** Keys that held something that is not ours, and keys without an end that were given one. */
  foreign: number;
  healed: number;
  /** Times that counters went over to another server: a failover, or slots of a cluster that moved. */
  moves: number;
}

export interface LaneOptions {
  readonly slot: number;
  readonly names: KeyNames;
  /** The server that holds the lane now, or undefined while that is not known. */
  readonly shard: () => GuardedShard | undefined;
  /** Whether no server was ever connected: then questions wait for the first one, as long as their time allows. */
  readonly starting: () => boolean;
  /** Weight of one call at most, and how many calls may be on their way. */
  readonly maxCallWeight: number;
  readonly maxInFlight: number;
  /** Questions that wait at most; further ones are turned away. */
  readonly maxWaiting: number;
  readonly nowMs: NowMs;
  /** Of all lanes together. */
  readonly stalls: Stalls;
  readonly runDelay: RunDelay;
  readonly counts: AskCounts;
  /** A call failed in a way that a look at the topology may cure. */
  readonly onSuspect: () => void;
  /** A call failed, other than by not being answered. */
  readonly onFailure: (shard: string, error: unknown) => void;
  /** For tests: scripts on another clock, and what they want to be told of it. */
  readonly tune?: ScriptTuning | undefined;
}

export interface ScriptTuning {
  readonly scripts: typeof scripts;
  readonly extraArguments: () => readonly string[];
}

/** One script call on its way. */
interface Flight {
  readonly pendings: readonly Pending[];
  readonly shard: GuardedShard;
  readonly generation: number;
  /** How long it may go unanswered, the shortest budget of its questions, and until when that is. */
  readonly patienceMs: number;
  readonly startMs: number;
  excusedMs: number;
  expiresMs: number;
  /** It went unanswered for too long: its room is free again, though who has the patience still listens. */
  overdue: boolean;
}

/** The first attempt gets this share of the time. */
const firstAttempt = 0.6;
/** How many questions of one slice go before the next slice has its turn. */
const perTurn = 8;
const mostRepeats = 20;

/**
 * Questions about counters of one slot. What arrives while the event loop goes round once travels in one call, up to a
 * weight that keeps the server responsive; a lone question is sent at once, unless several calls are on their way. One call leaves
 * per turn.
 */
export class Lane {
  readonly #options: LaneOptions;
  readonly #waiting = new WaitingLine<Pending>();
  /** Calls that somebody waits for, a few. Those that are overdue take no room. A set that few go in and out of is copied all the time. */
  #flights: Flight[] = [];
  #inFlight = 0;
  #flush: NodeJS.Immediate | undefined;
  #flushAskedMs = 0;
  /** A call has left in this turn of the event loop, before its end. */
  #hasLeft = false;
  #timer: NodeJS.Timeout | undefined;
  #timerDueMs = 0;
  readonly #stalls = new Stalls();
  #look: NodeJS.Immediate | undefined;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Calls on their way that somebody waits for. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * The server has `budgetMs` to answer. A caller who waits for less, `patienceMs`, is answered then, which says nothing of
   * the server: neither its breaker nor the questions that travel along are concerned. One who waits for longer still hears an
   * answer that comes too late, and the server may carry it out until then: it is blamed all the same, and is not asked again.
   */
  ask(question: Question, budgetMs: number, patienceMs: number = budgetMs): Promise<Answer> {
    const refused = this.#whyNot();
    if (refused !== undefined) return Promise.reject(isTake(question) ? refused : ofItsOwn(refused));
    return new Promise((resolve, reject) => {
      const repeatable = question.operation === "peek" || question.id !== undefined;
      this.#wait(question, weightOf(question), repeatable, budgetMs, patienceMs, resolve as Pending["resolve"], reject);
    });
  }

  /** The same for the commonest question, whose asker makes something of the answer, or of there being none. */
  askArrival(question: ArrivalQuestion, budgetMs: number, patienceMs: number): Promise<unknown> {
    const refused = this.#whyNot();
    return new Promise((resolve, reject) => {
      if (refused !== undefined) failArrival(question, refused, resolve, reject);
      else this.#wait(question, 1, false, budgetMs, patienceMs, resolve, reject);
    });
  }

  /** Why nothing can be asked at all. */
  #whyNot(): StoreUnavailable | undefined {
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
    // What comes in one turn of the event loop comes at one moment: asking for the time is not free.
    const startMs = this.#flush === undefined ? this.#options.nowMs() : this.#flushAskedMs;
    const retryMs = repeatable ? startMs + firstAttempt * budgetMs : Number.POSITIVE_INFINITY;
    this.#waiting.push(new Pending(question, weight, budgetMs, patienceMs, startMs, retryMs, resolve, reject));
    if (this.#flush === undefined && this.#options.shard()?.shard.ready === true) this.#flushSoon(startMs);
    this.#watch(startMs + Math.min((repeatable ? firstAttempt : 1) * budgetMs, patienceMs), startMs);
    this.#leaveIfFull();
  }

  get idle(): boolean {
    return this.#waiting.length === 0 && this.#flights.length === 0;
  }

  /** A server is connected, or another one holds the lane. */
  wake(): void {
    if (this.#waiting.length > 0) this.#flushSoon(this.#options.nowMs());
  }

  /** Gives up everything that is still open. */
  close(): void {
    clearTimeout(this.#timer);
    if (this.#flush !== undefined) clearImmediate(this.#flush);
    if (this.#look !== undefined) clearImmediate(this.#look);
    this.#timer = undefined;
    this.#flush = undefined;
    this.#look = undefined;
    const closed = new StoreUnavailable("storage_unavailable", "the counters are closed");
    for (const pending of this.#open()) this.#giveUp(pending, closed);
    this.#waiting.filter(() => false);
    this.#flights = [];
    this.#inFlight = 0;
  }

  *#open(): Generator<Pending> {
    yield* this.#waiting;
    for (const { pendings } of this.#flights) yield* pendings;
  }

  /** At the end of this turn of the event loop, when everything that arrived in it is here. */
  #flushSoon(nowMs: number): void {
    if (this.#flush !== undefined || this.#inFlight >= this.#options.maxInFlight) return;
    this.#flushAskedMs = nowMs;
    this.#flush = setImmediate(() => {
      const hasLeft = this.#hasLeft;
      this.#flush = undefined;
      this.#hasLeft = false;
      this.#excuse(this.#flushAskedMs);
      if (!hasLeft) this.#send();
      else if (this.#waiting.length > 0) this.#flushSoon(this.#options.nowMs());
    });
  }

  /**
   * A call that is full does not wait for the end of the turn. Only one: several would be written, carried out and answered together, and
   * the server have nothing to do meanwhile.
   */
  #leaveIfFull(): void {
    if (this.#hasLeft || this.#flush === undefined || this.#waiting.length < this.#options.maxCallWeight) return;
    this.#hasLeft = true;
    this.#send();
  }

  /** What was due happens only now: if that is late, this process did not run, and the server is not to blame for it. */
  #excuse(dueMs: number): void {
    const nowMs = this.#options.nowMs();
    const delayMs = this.#options.runDelay.totalMs(nowMs);
    this.#options.stalls.note(dueMs, nowMs, delayMs);
    const sinceMs = this.#stalls.note(dueMs, nowMs, delayMs);
    if (sinceMs === undefined) return;
    for (const flight of this.#flights) flight.expiresMs += excuse(flight, sinceMs, nowMs);
    for (const pending of new Set(this.#open())) {
      const movedMs = excuse(pending, sinceMs, nowMs);
      pending.expiresMs += movedMs;
      pending.lateMs += movedMs;
      pending.retryMs += movedMs;
    }
  }

  /** One call of each operation, and the rest in the next turn: the server works on these while those are being written. */
  #send(): void {
    const { maxInFlight, maxCallWeight } = this.#options;
    if (this.#inFlight >= maxInFlight) return;
    const shard = this.#options.shard();
    if (shard?.shard.ready !== true || !shard.closed) {
      // While nothing is known yet, what waits for a first connection goes on waiting; it has its deadlines.
      if (shard?.closed !== false && this.#options.starting()) return;
      for (const pending of this.#waiting) this.#giveUp(pending, unavailable(shard, pending));
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
    for (const operation of operations) {
      const own = pendings.filter(({ question, settled }) => !settled && question.operation === operation);
      if (own.length > 0) this.#call(shard, operation, own);
      if (own.length === pendings.length) break;
    }
    if (this.#waiting.length > 0) this.#flushSoon(this.#options.nowMs());
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
    const expiresMs = sentMs + patienceMs;
    const { generation } = shard;
    const flight: Flight = {
      pendings,
      shard,
      generation,
      patienceMs,
      startMs: sentMs,
      excusedMs: 0,
      expiresMs,
      overdue: false,
    };
    this.#flights.push(flight);
    this.#inFlight += 1;
    this.#watch(expiresMs, sentMs);
    counts.calls += 1;
    counts.questions += pendings.length;
    shard.figures.calls += 1;
    const deadlineMs = shard.clock.at(lateMs);
    const serverNowMs = shard.clock.aheadMs === undefined ? Date.now() : shard.clock.at(sentMs);
    const { names, tune } = this.#options;
    const { keys, args } = encode(operation, pendings, names, deadlineMs, serverNowMs);
    const script: Script = (tune?.scripts ?? scripts)[operation];
    const whole = tune === undefined ? args : [...args, ...tune.extraArguments()];
    callScript(shard.shard, slot, script, keys, whole, () => {
      counts.loads += 1;
    }).then(
      (reply) => this.#answer(flight, operation, reply, sentMs),
      (error: unknown) => this.#fail(flight, error),
    );
  }

  #answer(flight: Flight, operation: Operation, reply: unknown, sentMs: number): void {
    const { counts, nowMs } = this.#options;
    const { shard, pendings } = flight;
    try {
      const head = decodeHead(reply);
      const receivedMs = nowMs();
      shard.clock.learn(head.nowUs / 1000, sentMs, receivedMs);
      countAnswer(shard.figures, receivedMs - sentMs);
      counts.foreign += head.foreign;
      counts.healed += head.healed;
      if (head.late) this.#again(pendings);
      else if (operation === "takeArrivals")
        settleArrivals(pendings, decodeAheads(reply), decodeMarks(reply), head.nowUs, shard);
      else this.#settle(pendings, decode(operation, pendings, reply as number[]));
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
    this.#again(outside);
  }

  /** The server did nothing of it, so it may be asked once more, by its clock as it is known by now. */
  #again(pendings: readonly Pending[]): void {
    const repeated: Pending[] = [];
    const nowMs = this.#options.nowMs();
    for (const pending of pendings) {
      if (pending.settled) continue;
      pending.repeats += 1;
      const untilMs = Math.min(pending.expiresMs, pending.lateMs);
      if (pending.repeats <= mostRepeats && nowMs < untilMs) repeated.push(pending);
      else this.#giveUp(pending, new StoreUnavailable(whyLate(pending), undefined, { mayBeDone: pending.retried }));
    }
    this.#waiting.pushFirst(repeated);
  }

  #fail(flight: Flight, error: unknown): void {
    const { counts, onSuspect, onFailure } = this.#options;
    if (error instanceof Error && error.message.startsWith("TRYAGAIN")) {
      // Some keys of the call have moved with their slot and some have not. Nothing was done; one by one they are found.
      for (const pending of flight.pendings) pending.alone = true;
      this.#again(flight.pendings);
      this.#land(flight);
      return;
    }
    const outage = new StoreUnavailable("storage_unavailable", undefined, { cause: error });
    for (const pending of flight.pendings) this.#giveUp(pending, outage);
    if (!flight.overdue) {
      counts.failedCalls += 1;
      flight.shard.figures.failures[callFailureOf(error)] += 1;
      onFailure(flight.shard.shard.name, error);
      // What passes by itself, and is told at once, needs no breaker: enforcement is back the moment it has passed.
      if (!isPassing(error)) flight.shard.fail(flight.generation);
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

  /** It was answered, and there is room for another call. */
  #land(flight: Flight): void {
    if (this.#forget(flight) && !flight.overdue) this.#inFlight -= 1;
    if (this.#waiting.length > 0) this.#flushSoon(this.#options.nowMs());
  }

  /** False where it was forgotten before. */
  #forget(flight: Flight): boolean {
    const index = this.#flights.indexOf(flight);
    if (index >= 0) this.#flights.splice(index, 1);
    return index >= 0;
  }

  /** It was not answered within the shortest budget of its questions. */
  #giveUpFlight(flight: Flight): void {
    flight.overdue = true;
    this.#inFlight -= 1;
    this.#options.counts.failedCalls += 1;
    const { shard, generation } = flight;
    const starved = isStarved(flight);
    shard.figures.failures[starved ? "starved" : "timeout"] += 1;
    // A server that answers others is not to blame for what this process missed.
    if (!starved || !shard.isHeard) shard.fail(generation);
    if (this.#waiting.length > 0) this.#flushSoon(this.#options.nowMs());
  }

  /** Sees to it that somebody looks at that moment whether time is up. One timer for all. */
  #watch(dueMs: number, nowMs: number): void {
    if (this.#timer !== undefined) {
      if (this.#timerDueMs <= dueMs + 1) return;
      clearTimeout(this.#timer);
    }
    this.#timerDueMs = dueMs;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#excuse(this.#timerDueMs);
        // Answers that have arrived by now are read before a question is given up for want of one.
        const readFromMs = this.#options.nowMs();
        this.#look ??= setImmediate(() => {
          this.#look = undefined;
          this.#excuse(readFromMs);
          this.#expire(readFromMs);
        });
      },
      Math.max(dueMs - nowMs, 1),
    );
  }

  /** Gives up what was due at that moment, whose answers have been looked for since. */
  #expire(now: number): void {
    const { counts, nowMs } = this.#options;
    const repeated: Pending[] = [];
    let nextMs = Number.POSITIVE_INFINITY;
    // One for all that are late together: an error costs more than the check that it ends.
    const errors: Partial<Record<StoreUnavailableReason, StoreUnavailable>> = {};
    for (const pending of this.#open()) {
      if (pending.settled) continue;
      if (pending.expiresMs <= now) {
        const why = whyLate(pending);
        if (pending.question.operation !== "lease") counts[why === "process_starved" ? "starved" : "timeouts"] += 1;
        errors[why] ??= new StoreUnavailable(why);
        this.#giveUp(pending, errors[why]);
        continue;
      }
      if (pending.retryMs <= now) {
        pending.retryMs = Number.POSITIVE_INFINITY;
        if (pending.sent) {
          pending.retried = true;
          repeated.push(pending);
        }
      }
      nextMs = Math.min(nextMs, pending.expiresMs, pending.retryMs);
    }
    for (const flight of this.#flights) {
      if (!flight.overdue && flight.expiresMs <= now) this.#giveUpFlight(flight);
      if (!flight.overdue) nextMs = Math.min(nextMs, flight.expiresMs);
    }
    this.#flights = this.#flights.filter(
      ({ overdue, pendings }) => !overdue || pendings.some(({ settled }) => !settled),
    );
    this.#waiting.filter(({ settled }) => !settled);
    counts.retries += repeated.length;
    this.#waiting.pushFirst(repeated);
    if (repeated.length > 0) this.#send();
    if (nextMs < Number.POSITIVE_INFINITY) this.#watch(nextMs, nowMs());
  }
}

/** The outcome of one arrival after the other. */
let outcome: OneOutcome | undefined;

function settleArrivals(
  pendings: readonly Pending[],
  aheads: readonly number[],
  marks: readonly string[],
  nowUs: number,
  shard: GuardedShard,
): void {
  let next = 0;
  let nextMark = 0;
  for (const pending of pendings) {
    const question = pending.question as AnyArrivals;
    const at = next;
    const markAt = nextMark;
    next += question.count;
    if (question.holdMs > 0) nextMark += 2 * question.count;
    if (pending.settled) continue;
    pending.settled = true;
    try {
      if (question instanceof ArrivalQuestion) {
        pending.resolve(decideArrival(question, aheads[at]!, nowUs));
        continue;
      }
      const { limits, holdMs } = question;
      const held: Held | undefined =
        holdMs === 0
          ? undefined
          : {
              shard,
              connections: shard.connections,
              nowUs,
              aheads: aheads.slice(at, next),
              marks: marks.slice(markAt, nextMark),
            };
      pending.resolve(decodeArrivals(limits, aheads, at, nowUs, held));
    } catch (error) {
      pending.reject(error);
    }
  }
}

/** What its asker makes of it. */
function decideArrival(
  { asker, limit, window, subject, cost }: ArrivalQuestion,
  ahead: number,
  nowUs: number,
): unknown {
  outcome ??= createOneOutcome(window);
  outcome.atMs = nowUs / 1000;
  decodeArrival(window, cost, ahead, outcome);
  return asker.decide(limit, subject, cost, outcome);
}

function failArrival(
  { asker, request }: ArrivalQuestion,
  error: Error,
  resolve: Pending["resolve"],
  reject: Pending["reject"],
): void {
  try {
    resolve(asker.fail(request, error));
  } catch (thrown) {
    reject(thrown);
  }
}

/** Pendings are all of that operation. */
function encode(
  operation: Operation,
  pendings: readonly Pending[],
  names: KeyNames,
  deadlineMs: number,
  serverNowMs: number,
): Call {
  if (operation === "takeArrivals") {
    return encodeArrivals(
      pendings.map(({ question }) => question as AnyArrivals),
      names,
      deadlineMs,
    );
  }
  const questions = pendings.map(({ question }) => question as Question);
  if (operation === "block") return encodeBlocks(questions, names, deadlineMs);
  if (operation === "lease") return encodeLeases(questions, names, deadlineMs, serverNowMs);
  return encodePlan(questions, names, deadlineMs, serverNowMs);
}

function decode(operation: Operation, pendings: readonly Pending[], reply: readonly number[]): readonly Reply[] {
  const questions = pendings.map(({ question }) => question as Question);
  if (operation === "block") return decodeBlocks(questions);
  if (operation === "lease") return decodeLeases(questions, reply);
  return operation === "charge" ? decodeCharges(questions, reply) : decodePlan(questions, reply);
}

/** A server that loads its data, or was just told that it is no primary any more; a cluster that looks for a new one. */
function isPassing(error: unknown): boolean {
  return error instanceof Error && /^(CLUSTERDOWN|LOADING|READONLY|MASTERDOWN)\b/.test(error.message);
}

function whyUnavailable(shard: GuardedShard | undefined): string {
  if (shard === undefined) return "no server is known for these counters";
  return shard.closed ? `there is no connection to ${shard.shard.name}` : breakerIsOpen(shard.shard);
}

/** Of a take that fails, a decision is made. */
function isTake({ operation }: Pick<Question, "operation">): boolean {
  return operation === "take" || operation === "takeArrivals";
}

/** The same where it may have been asked before. */
function unavailable(shard: GuardedShard | undefined, { question, retried }: Pending): StoreUnavailable {
  const why = whyUnavailable(shard);
  if (retried) return new StoreUnavailable("storage_unavailable", undefined, { cause: new Error(why) });
  return isTake(question) ? nothingAsked(why) : ofItsOwn(nothingAsked(why));
}
