import { type Excusable, excuse, isStarved, Stalls } from "./stalls.ts";

/** The first attempt gets this share of the time if another one may follow. */
const firstAttempt = 0.6;
const mostRepeats = 20;

/** A question that a caller waits for. */
export interface PendingQuestion extends Excusable {
  /** When it is given up. Moves only by the time that this process does not run, a second at most. */
  expiresMs: number;
  /** When it is asked again if there is no answer. Infinity: never, or not again. */
  retryMs: number;
  /** How often it was passed to `mayRepeat`. */
  repeats: number;
  settled: boolean;
}

/** The server that a flight is on its way to. */
export interface Peer {
  /** Whether it has answered lately. */
  readonly isHeard: boolean;
  /** Counts a failure against it, unless its breaker has begun another generation since. */
  fail(generation: number): void;
}

/** Questions that were sent together and are not answered yet. */
export class Flight<Q, P> implements Excusable {
  readonly peer: P;
  /** The generation of the peer's breaker when it was sent, under which it settles. */
  readonly generation: number;
  readonly pendings: readonly Q[];
  /** How long it may go unanswered before that is held against the peer, and when that is. */
  readonly patienceMs: number;
  readonly startMs: number;
  expiresMs: number;
  excusedMs = 0;
  /** It went unanswered for too long. A caller with more patience still gets a late answer. */
  overdue = false;

  constructor(peer: P, generation: number, pendings: readonly Q[], patienceMs: number, startMs: number) {
    this.peer = peer;
    this.generation = generation;
    this.pendings = pendings;
    this.patienceMs = patienceMs;
    this.startMs = startMs;
    this.expiresMs = startMs + patienceMs;
  }
}

/** Clock and timers of a line of questions. */
export interface LineTime {
  /** Monotonic milliseconds. */
  nowMs(): number;
  /** Calls `wake` once, and keeps the process alive until then. Returns a function that cancels it. */
  schedule(waitMs: number, wake: () => void): () => void;
  /** Calls at the end of this turn of the event loop, when everything that arrived in it has been read. */
  soon(act: () => void): void;
  /** How long this process has waited for a processor since it began, if that is known. */
  runDelayMs?(nowMs: number): number;
}

/** A line of questions, as its deadlines see it. Nothing here is called after `close`. */
export interface Line<Q, F> {
  /** Questions to be sent. They may also be in flight, if they are asked again. */
  readonly waiting: Iterable<Q>;
  /** The turn that `endTurnSoon` was called in is over: sends what is waiting. */
  endTurn(): void;
  /** Settles the questions that have timed out, if any, and removes settled ones from those waiting. */
  expire(late: ReadonlySet<Q>): void;
  /** Whether to ask again a question that is not answered within its first attempt. */
  mayRetry(pending: Q): boolean;
  /** Asks these again. */
  retry(pendings: readonly Q[]): void;
  /** A flight became overdue: frees its room. `starved` means that this process did not run for all of its time. */
  release(flight: F, starved: boolean): void;
  /** There is room again: sends what is waiting at the end of this turn. */
  wake(): void;
  /** No caller listens to an overdue flight any longer. It has left `flights`. */
  abandon(flight: F): void;
}

/**
 * When the questions of a line are sent, asked again and given up.
 *
 *     question   waiting ──► in flight ──► settled, by an answer
 *                   ▲            ├───────► settled, by its deadline (`expire`)
 *                   └── retry ◄──┘         after its first attempt, if asking twice does no harm
 *     flight     in time ──► overdue (`release`; the peer is blamed) ──► `abandon`ed when all its questions are settled
 *
 * Questions of one turn of the event loop share an arrival time, and are sent at its end. One timer watches all
 * deadlines. When it fires, answers that have arrived are read first: only questions still open after one more turn are
 * given up. Time during which this process did not run moves every deadline, because the peer is not to blame for it.
 */
export class Deadlines<Q extends PendingQuestion, F extends Flight<Q, Peer>> {
  readonly #time: LineTime;
  readonly #line: Line<Q, F>;
  readonly #stalls = new Stalls();
  readonly #allStalls: Stalls | undefined;
  /** A few. An array, because a small set that changes often is copied all the time. */
  #flights: F[] = [];
  #turnIsOpen = false;
  #turnMs = 0;
  #cancelTimer: (() => void) | undefined;
  #timerDueMs = 0;
  #isLooking = false;
  #lookFromMs = 0;
  #closed = false;

  /** `allStalls` counts those of several lines together. */
  constructor(time: LineTime, line: Line<Q, F>, allStalls?: Stalls) {
    this.#time = time;
    this.#line = line;
    this.#allStalls = allStalls;
  }

  /** Flights that a caller still listens to. */
  get flights(): readonly F[] {
    return this.#flights;
  }

  /** Whether a turn is open, at whose end waiting questions are sent. */
  get turnIsOpen(): boolean {
    return this.#turnIsOpen;
  }

  /** The arrival time of a question that arrives now. The same for a whole turn: reading the clock is not free. */
  get arrivalMs(): number {
    return this.#turnIsOpen ? this.#turnMs : this.#time.nowMs();
  }

  /** Sends what is waiting at the end of this turn of the event loop, when everything that arrives in it is here. */
  endTurnSoon(nowMs: number): void {
    if (this.#turnIsOpen) return;
    this.#turnIsOpen = true;
    this.#turnMs = nowMs;
    this.#time.soon(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#turnIsOpen = false;
    if (this.#closed) return;
    this.#excuse(this.#turnMs);
    this.#line.endTurn();
  };

  addFlight(flight: F): void {
    this.#flights.push(flight);
    this.watch(flight.expiresMs, flight.startMs);
  }

  /** Returns false if it is not among the flights any longer. */
  removeFlight(flight: F): boolean {
    const index = this.#flights.indexOf(flight);
    if (index >= 0) this.#flights.splice(index, 1);
    return index >= 0;
  }

  /** Wakes at that moment to look for expired deadlines. */
  watch(dueMs: number, nowMs: number): void {
    if (this.#cancelTimer !== undefined) {
      if (this.#timerDueMs <= dueMs + 1) return;
      this.#cancelTimer();
    }
    this.#timerDueMs = dueMs;
    this.#cancelTimer = this.#time.schedule(Math.max(dueMs - nowMs, 1), this.#ring);
  }

  /** Cancels the timer: call it when nothing is open. */
  rest(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  /** Makes no more calls, and forgets its flights. */
  close(): void {
    this.#closed = true;
    this.rest();
    this.#flights = [];
  }

  readonly #ring = (): void => {
    this.#cancelTimer = undefined;
    this.#excuse(this.#timerDueMs);
    if (this.#isLooking) return;
    // Answers that have arrived by now are read before a question is given up.
    this.#isLooking = true;
    this.#lookFromMs = this.#time.nowMs();
    this.#time.soon(this.#look);
  };

  readonly #look = (): void => {
    this.#isLooking = false;
    if (this.#closed) return;
    this.#excuse(this.#lookFromMs);
    this.#expire(this.#lookFromMs);
  };

  /** Work that was due runs only now: if that is late, this process did not run, and every deadline moves by it. */
  #excuse(dueMs: number): void {
    const nowMs = this.#time.nowMs();
    const delayMs = this.#time.runDelayMs?.(nowMs);
    this.#allStalls?.note(dueMs, nowMs, delayMs);
    const sinceMs = this.#stalls.note(dueMs, nowMs, delayMs);
    if (sinceMs === undefined) return;
    for (const flight of this.#flights) flight.expiresMs += excuse(flight, sinceMs, nowMs);
    for (const pending of new Set(this.#open())) {
      const movedMs = excuse(pending, sinceMs, nowMs);
      pending.expiresMs += movedMs;
      pending.retryMs += movedMs;
    }
  }

  /** Gives up what was due at that moment; its answers have been looked for since. */
  #expire(nowMs: number): void {
    const late = new Set<Q>();
    const retried: Q[] = [];
    let nextMs = Number.POSITIVE_INFINITY;
    for (const pending of this.#open()) {
      if (pending.settled) continue;
      if (pending.expiresMs <= nowMs) {
        late.add(pending);
        continue;
      }
      if (pending.retryMs <= nowMs) {
        pending.retryMs = Number.POSITIVE_INFINITY;
        if (this.#line.mayRetry(pending)) retried.push(pending);
      }
      nextMs = Math.min(nextMs, pending.expiresMs, pending.retryMs);
    }
    this.#line.expire(late);
    for (const flight of this.#flights) {
      if (!flight.overdue && flight.expiresMs <= nowMs) this.#giveUp(flight);
      if (!flight.overdue) nextMs = Math.min(nextMs, flight.expiresMs);
    }
    this.#dropUnheard();
    if (retried.length > 0) this.#line.retry(retried);
    if (nextMs < Number.POSITIVE_INFINITY) this.watch(nextMs, this.#time.nowMs());
  }

  #giveUp(flight: F): void {
    flight.overdue = true;
    const starved = isStarved(flight);
    this.#line.release(flight, starved);
    // A server that answers others is not to blame for what this process missed.
    if (!starved || !flight.peer.isHeard) flight.peer.fail(flight.generation);
    this.#line.wake();
  }

  #dropUnheard(): void {
    const unheard = this.#flights.filter(
      ({ overdue, pendings }) => overdue && pendings.every(({ settled }) => settled),
    );
    for (const flight of unheard) if (this.removeFlight(flight)) this.#line.abandon(flight);
  }

  *#open(): Generator<Q> {
    yield* this.#line.waiting;
    for (const { pendings } of this.#flights) yield* pendings;
  }
}

/** When a question is asked again: never if asking twice could charge twice. */
export function retryAtMs(repeatable: boolean, startMs: number, budgetMs: number): number {
  return repeatable ? startMs + firstAttempt * budgetMs : Number.POSITIVE_INFINITY;
}

/** Counts one more attempt, and returns whether there is time for it and there were not too many. */
export function mayRepeat(pending: PendingQuestion, nowMs: number, untilMs: number = pending.expiresMs): boolean {
  pending.repeats += 1;
  return pending.repeats <= mostRepeats && nowMs < untilMs;
}
