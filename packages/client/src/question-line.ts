import type { SluiceError, StoreUnavailableReason } from "sluice";
import { excuse, isStarved, Stalls, whyLate } from "sluice/store";
import {
  type AnswerValue,
  ExchangeError,
  maxBatch,
  maxBatchCharacters,
  type Question,
  type QuestionKind,
  type Reply,
  type Sending,
} from "./exchange.ts";
import type { GuardedAddress } from "./guarded-address.ts";
import type { RemoteTime } from "./remote-time.ts";

/** How a question ended. */
export type Outcome =
  | { readonly kind: "answer"; readonly value: AnswerValue }
  | { readonly kind: "refused"; readonly error: SluiceError }
  | Unanswered;

/** No server could be asked, or none answered. */
export interface Unanswered {
  readonly kind: "unanswered";
  readonly reason: StoreUnavailableReason;
  /** A server may have carried it out all the same. */
  readonly mayBeDone: boolean;
}

interface Pending {
  readonly question: Question;
  readonly characters: number;
  readonly patienceMs: number;
  readonly settle: (outcome: Outcome) => void;
  readonly startMs: number;
  expiresMs: number;
  /** When it is asked once more, of somebody else; never where that could charge twice. */
  retryMs: number;
  /** How much of its time this very process stood still, which is not held against the server. */
  excusedMs: number;
  sentTo: GuardedAddress | undefined;
  /** It waits to be sent; and how many batches that are on their way hold it. */
  waits: boolean;
  inFlight: number;
  repeats: number;
  settled: boolean;
}

/** A batch that is on its way. */
interface Flight {
  readonly address: GuardedAddress;
  readonly generation: number;
  readonly kind: QuestionKind;
  readonly pendings: readonly Pending[];
  readonly patienceMs: number;
  readonly sending: Sending;
  readonly startMs: number;
  expiresMs: number;
  excusedMs: number;
  /** It went unanswered for too long: its address was told, though who has the patience still listens. */
  overdue: boolean;
}

export interface QuestionLineOptions {
  readonly addresses: readonly GuardedAddress[];
  readonly time: RemoteTime;
  /** How long a server may leave checks unanswered, also those of who waits less, before that is held against it. */
  readonly patienceMs: number;
  /** How many questions may wait to be sent. */
  readonly maxWaiting: number;
}

export interface LineStats {
  /** Questions that were sent, repeated ones each time, and the batches that they were sent in. */
  readonly sent: number;
  readonly batches: number;
  readonly repeated: number;
  readonly waiting: number;
  readonly unanswered: number;
}

/** The server gets this share of the time, so that its own answer to an outage arrives in time. */
const serverShare = 0.8;
/** The first attempt gets this share of the time, where another one may follow. */
const firstAttempt = 0.6;
const mostRepeats = 20;

/**
 * Questions on their way to any of several servers. What arrives in one turn of the event loop travels together, to the ready
 * server that has the fewest unanswered questions; servers that are equal in that take turns. A question waits here, belonging to
 * nobody, until it is sent, so that no server takes one down with it that it was not sent. What was sent and is lost is asked
 * again only if that cannot charge twice.
 */
export class QuestionLine {
  readonly #addresses: readonly GuardedAddress[];
  readonly #time: RemoteTime;
  readonly #patienceMs: number;
  readonly #maxWaiting: number;
  /** By kind and by how long they have time: what travels together has about the same deadline. */
  readonly #waiting = new Map<string, Pending[]>();
  readonly #flights = new Set<Flight>();
  #waitingCount = 0;
  /** Questions that somebody waits for. */
  #openCount = 0;
  #turn = 0;
  #flushing = false;
  #flushAskedMs = 0;
  #callOff: (() => void) | undefined;
  #timerDueMs = 0;
  readonly #stalls = new Stalls();
  #looking = false;
  #closed = false;
  #sent = 0;
  #batches = 0;
  #repeated = 0;

  constructor({ addresses, time, patienceMs, maxWaiting }: QuestionLineOptions) {
    this.#addresses = addresses;
    this.#time = time;
    this.#patienceMs = patienceMs;
    this.#maxWaiting = maxWaiting;
  }

  get stats(): LineStats {
    return {
      sent: this.#sent,
      batches: this.#batches,
      repeated: this.#repeated,
      waiting: this.#waitingCount,
      unanswered: this.#addresses.reduce((sum, { unanswered }) => sum + unanswered, 0),
    };
  }

  /** Settles once, and never before this returns but where nobody can be asked. */
  ask(question: Question, budgetMs: number, settle: (outcome: Outcome) => void): void {
    if (this.#closed || !this.#approach()) {
      settle(unavailable);
      return;
    }
    if (this.#waitingCount >= this.#maxWaiting) {
      settle(overloaded);
      return;
    }
    // What comes in one turn of the event loop comes at one moment: asking for the time is not free.
    const nowMs = this.#flushing ? this.#flushAskedMs : this.#time.clock.nowMs();
    const repeatable = isRepeatable(question);
    this.#openCount += 1;
    this.#push({
      question,
      characters: charactersOf(question),
      patienceMs: budgetMs,
      settle,
      startMs: nowMs,
      expiresMs: nowMs + budgetMs,
      retryMs: repeatable ? nowMs + firstAttempt * budgetMs : Number.POSITIVE_INFINITY,
      excusedMs: 0,
      sentTo: undefined,
      waits: false,
      inFlight: 0,
      repeats: 0,
      settled: false,
    });
    this.#flushSoon(nowMs);
    this.#watch(nowMs + (repeatable ? firstAttempt : 1) * budgetMs, nowMs);
  }

  /** A server can be asked. */
  wake(): void {
    if (this.#waitingCount > 0) this.#flushSoon(this.#time.clock.nowMs());
  }

  /** A server was put aside. Where it was the last one, what waits waits for nothing. */
  despair(): void {
    if (this.#waitingCount === 0 || this.#approach()) return;
    for (const pending of this.#takeAll()) this.#settle(pending, unavailable);
  }

  /** Gives up everything that is still open. */
  close(): void {
    this.#closed = true;
    this.#callOff?.();
    this.#callOff = undefined;
    for (const pending of this.#takeAll()) this.#settle(pending, unavailable);
    for (const { pendings, sending } of this.#flights) {
      sending.abandon();
      for (const pending of pendings) this.#settle(pending, lost);
    }
    this.#flights.clear();
  }

  /** Whether somebody can be asked, or is being reached. */
  #approach(): boolean {
    let hopeful = false;
    for (const address of this.#addresses) hopeful = address.approach() || hopeful;
    return hopeful;
  }

  #push(pending: Pending): void {
    const group = groupOf(pending);
    const waiting = this.#waiting.get(group);
    if (waiting === undefined) this.#waiting.set(group, [pending]);
    else waiting.push(pending);
    pending.waits = true;
    this.#waitingCount += 1;
  }

  #takeAll(): readonly Pending[] {
    const all = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    this.#waitingCount = 0;
    return all;
  }

  #settle(pending: Pending, outcome: Outcome): void {
    if (pending.settled) return;
    pending.settled = true;
    this.#openCount -= 1;
    this.#rest();
    pending.settle(outcome);
  }

  /** Where nobody waits and nothing is on its way, no timer keeps the process alive. */
  #rest(): void {
    if (this.#openCount > 0 || this.#flights.size > 0) return;
    this.#callOff?.();
    this.#callOff = undefined;
  }

  #flushSoon(nowMs: number): void {
    if (this.#flushing) return;
    this.#flushing = true;
    this.#flushAskedMs = nowMs;
    this.#time.soon(() => {
      this.#flushing = false;
      if (this.#closed) return;
      this.#excuse(this.#flushAskedMs);
      this.#flush();
    });
  }

  #flush(): void {
    for (const [group, pendings] of this.#waiting) {
      let from = 0;
      while (from < pendings.length) {
        const address = this.#choose(pendings[from]!);
        if (address === undefined) break;
        from = this.#sendFrom(pendings, from, address);
      }
      this.#waitingCount -= from;
      if (from === pendings.length) this.#waiting.delete(group);
      else if (from > 0) this.#waiting.set(group, pendings.slice(from));
    }
  }

  /** Of those with room the one with the fewest unanswered questions, in turn; not the one that was asked already, if possible. */
  #choose({ question: { kind }, sentTo: asked }: Pending): GuardedAddress | undefined {
    const { length } = this.#addresses;
    let best: GuardedAddress | undefined;
    for (let i = 0; i < length; i++) {
      const address = this.#addresses[(this.#turn + i) % length]!;
      if (!address.hasRoom(kind)) continue;
      if (best === undefined || best === asked || (address !== asked && address.unanswered < best.unanswered))
        best = address;
    }
    if (best !== undefined) this.#turn = (this.#addresses.indexOf(best) + 1) % length;
    return best;
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
    const expiresMs = nowMs + patienceMs;
    const flight: Flight = {
      address,
      generation,
      kind,
      pendings,
      patienceMs,
      sending,
      startMs: nowMs,
      expiresMs,
      excusedMs: 0,
      overdue: false,
    };
    this.#flights.add(flight);
    address.inFlight[kind] += 1;
    address.unanswered += pendings.length;
    this.#sent += pendings.length;
    this.#batches += 1;
    this.#watch(expiresMs, nowMs);
    sending.replies.then(
      (replies) => this.#answer(flight, replies),
      (error: unknown) => this.#fail(flight, error),
    );
  }

  #answer(flight: Flight, replies: readonly Reply[]): void {
    const { address, generation, pendings } = flight;
    if (replies.length !== pendings.length) {
      this.#fail(flight, new ExchangeError("lost", `${replies.length} replies to ${pendings.length} questions`));
      return;
    }
    if (!flight.overdue) address.succeed(generation);
    this.#land(flight);
    for (let i = 0; i < replies.length; i++) this.#reply(pendings[i]!, replies[i]!);
  }

  #reply(pending: Pending, reply: Reply): void {
    if (reply.kind === "answer" || reply.kind === "refused") this.#settle(pending, reply);
    else if (isElsewhere(pending)) return;
    // One that is told to go elsewhere goes, once; if there is nobody else, it is not sent into the same refusal again.
    else if (reply.kind === "elsewhere" && pending.repeats === 0 && this.#hasOther(pending.sentTo))
      this.#again(pending);
    else this.#settle(pending, { kind: "unanswered", reason: reply.reason, mayBeDone: reply.kind === "failed" });
  }

  #hasOther(asked: GuardedAddress | undefined): boolean {
    return this.#addresses.some((address) => address !== asked && address.ready);
  }

  #fail(flight: Flight, error: unknown): void {
    const because = error instanceof ExchangeError ? error.because : "lost";
    const refusal = error instanceof ExchangeError ? error.refusal : undefined;
    if (because === "lost" && !flight.overdue) flight.address.fail(flight.generation);
    this.#land(flight);
    for (const pending of flight.pendings) {
      if (refusal !== undefined) this.#settle(pending, { kind: "refused", error: refusal });
      else if (isElsewhere(pending)) continue;
      else if (because === "not_asked" || isRepeatable(pending.question)) this.#again(pending);
      else this.#settle(pending, lost);
    }
  }

  /** Asks once more, where that is safe and there is time. */
  #again(pending: Pending): void {
    if (pending.settled) return;
    const nowMs = this.#time.clock.nowMs();
    pending.repeats += 1;
    if (pending.repeats > mostRepeats || nowMs >= pending.expiresMs || !this.#approach()) {
      this.#settle(pending, unavailable);
      return;
    }
    this.#repeated += 1;
    this.#push(pending);
    this.#flushSoon(nowMs);
  }

  #land(flight: Flight): void {
    if (!this.#flights.delete(flight)) return;
    const { address, kind, pendings } = flight;
    for (const pending of pendings) pending.inFlight -= 1;
    address.unanswered -= pendings.length;
    if (!flight.overdue) address.inFlight[kind] -= 1;
    this.#rest();
    this.wake();
  }

  /** What was due happens only now: if that is late, this process did not run, and the server is not to blame for it. */
  #excuse(dueMs: number): void {
    const nowMs = this.#time.clock.nowMs();
    const sinceMs = this.#stalls.note(dueMs, nowMs);
    if (sinceMs === undefined) return;
    for (const flight of this.#flights) flight.expiresMs += excuse(flight, sinceMs, nowMs);
    for (const pending of new Set(this.#open())) {
      const movedMs = excuse(pending, sinceMs, nowMs);
      pending.expiresMs += movedMs;
      pending.retryMs += movedMs;
    }
  }

  *#open(): Generator<Pending> {
    for (const pendings of this.#waiting.values()) yield* pendings;
    for (const { pendings } of this.#flights) yield* pendings;
  }

  /** Sees to it that somebody looks at that moment whether time is up. One timer for all. */
  #watch(dueMs: number, nowMs: number): void {
    if (this.#callOff !== undefined) {
      if (this.#timerDueMs <= dueMs + 1) return;
      this.#callOff();
    }
    this.#timerDueMs = dueMs;
    this.#callOff = this.#time.schedule(Math.max(dueMs - nowMs, 1), () => {
      this.#callOff = undefined;
      this.#excuse(this.#timerDueMs);
      // Answers that have arrived by now are read before a question is given up for want of one.
      if (this.#looking) return;
      this.#looking = true;
      const readFromMs = this.#time.clock.nowMs();
      this.#time.soon(() => {
        this.#looking = false;
        if (this.#closed) return;
        this.#excuse(readFromMs);
        this.#expire(readFromMs);
      });
    });
  }

  /** Gives up what was due at that moment, whose answers have been looked for since. */
  #expire(nowMs: number): void {
    const repeated: Pending[] = [];
    let nextMs = Number.POSITIVE_INFINITY;
    for (const pending of this.#open()) {
      if (pending.settled) continue;
      if (pending.expiresMs <= nowMs) {
        this.#settle(pending, { kind: "unanswered", reason: whyLate(pending), mayBeDone: true });
        continue;
      }
      if (pending.retryMs <= nowMs) {
        pending.retryMs = Number.POSITIVE_INFINITY;
        if (pending.inFlight > 0 && !pending.waits && this.#hasOther(pending.sentTo)) repeated.push(pending);
      }
      nextMs = Math.min(nextMs, pending.expiresMs, pending.retryMs);
    }
    this.#forgetSettled();
    for (const flight of this.#flights) {
      if (!flight.overdue && flight.expiresMs <= nowMs) this.#giveUp(flight);
      if (!flight.overdue) nextMs = Math.min(nextMs, flight.expiresMs);
      else if (flight.pendings.every(({ settled }) => settled)) {
        flight.sending.abandon();
        this.#land(flight);
      }
    }
    for (const pending of repeated) this.#again(pending);
    if (nextMs < Number.POSITIVE_INFINITY) this.#watch(nextMs, this.#time.clock.nowMs());
  }

  #forgetSettled(): void {
    this.#waitingCount = 0;
    for (const [group, pendings] of this.#waiting) {
      const open = pendings.filter(({ settled }) => !settled);
      this.#waitingCount += open.length;
      if (open.length === 0) this.#waiting.delete(group);
      else if (open.length < pendings.length) this.#waiting.set(group, open);
    }
  }

  /** It was not answered for as long as may be. Its room is free again. */
  #giveUp(flight: Flight): void {
    flight.overdue = true;
    flight.address.inFlight[flight.kind] -= 1;
    // A server that answers others is not to blame for what this process missed.
    if (!isStarved(flight) || !flight.address.isHeard) flight.address.fail(flight.generation);
    this.wake();
  }
}

const unavailable: Unanswered = { kind: "unanswered", reason: "storage_unavailable", mayBeDone: false };
const lost: Unanswered = { ...unavailable, mayBeDone: true };
const overloaded: Unanswered = { kind: "unanswered", reason: "storage_overloaded", mayBeDone: false };

/** Whether another server has it, or is about to get it, and may still answer. */
function isElsewhere({ waits, inFlight }: Pending): boolean {
  return waits || inFlight > 0;
}

/** Whether asking twice does the same as asking once. */
function isRepeatable(question: Question): boolean {
  if (question.kind === "reset") return true;
  return question.kind === "check" && (question.request.preview === true || question.request.id !== undefined);
}

function charactersOf(question: Question): number {
  if (question.kind === "give") return question.receipt.length;
  const { dimensions, domain = "", id = "", policies = [] } = question.request;
  let characters = domain.length + id.length;
  for (const policy of policies) characters += policy.length;
  for (const name in dimensions) characters += name.length + dimensions[name]!.length;
  return characters;
}

const groupNames = new Map<QuestionKind, readonly string[]>();

/** Budgets of one group differ by less than a factor of two. */
function groupOf({ question: { kind }, patienceMs }: Pending): string {
  let names = groupNames.get(kind);
  if (names === undefined) {
    names = Array.from({ length: 32 }, (_, i) => `${kind} ${i}`);
    groupNames.set(kind, names);
  }
  return names[31 - Math.clz32(patienceMs)] ?? kind;
}
