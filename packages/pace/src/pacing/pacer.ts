import type { Clock } from "sluice";
import { systemClock } from "sluice/internal";
import { checkOptions, invalidOption } from "../check-options.ts";
import { optionNumber } from "../option-number.ts";
import type { RateLimitReading } from "../reading/read-rate-limit.ts";
import { type Schedule, systemSchedule } from "../schedule.ts";
import { LearnedPace } from "./learned-pace.ts";
import { PaceError } from "./pace-error.ts";
import type { Gate } from "./pace-limit.ts";
import { type Waiter, WaitingLine } from "./waiting-line.ts";

export interface PaceOptions {
  /** How many calls may run at once. Default: any number. */
  readonly concurrency?: number | undefined;
  /** A call that cannot start within this is not made: `wait_too_long`. Default: it waits as long as it takes. */
  readonly maxWaitMs?: number | undefined;
  /** How many calls may wait; one more is `queue_full`. Default: 10 000. */
  readonly maxQueue?: number | undefined;
  /** Calls are spread once less than this share of a limit is left, as answers report it. Default: 0.5; 0 turns it off. */
  readonly spreadBelow?: number | undefined;
  /** The largest spacing of calls caused by that. Default: 10 000. */
  readonly maxSpacingMs?: number | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock | undefined;
  /** Default: `setTimeout`. */
  readonly schedule?: Schedule | undefined;
}

export interface TurnOptions {
  /** Gives up waiting: the call rejects with its reason, at once. */
  readonly signal?: AbortSignal | null | undefined;
  /** What the call takes from the limit. Default: 1. */
  readonly cost?: number | undefined;
}

/**
 * A call that wants a turn. One of `start` and `refuse` is called, once, and perhaps before `enter` returns; neither is
 * called after the call gave up. They must not throw: other calls are behind it in line.
 */
export interface Entrant {
  /** A number of at least 1. */
  readonly cost: number;
  /** Whether it counts as running between its turn and `end`. */
  readonly runs: boolean;
  start(): void;
  refuse(reason: unknown): void;
}

interface WaitingCall extends Waiter {
  readonly entrant: Entrant;
  readonly deadlineMs: number;
  inLine: boolean;
}

/** When the first call in line may start. */
type Due =
  | { readonly kind: "now" }
  | { readonly kind: "later"; readonly atMs: number }
  | { readonly kind: "never"; readonly because: unknown };

const never = Number.POSITIVE_INFINITY;

const alwaysOpen: Gate = () => ({ allowed: true, retryAfterMs: undefined });

/**
 * A line of calls before a gate. Only the first in line is ever examined: it starts, is refused, or the one timer is
 * set to when it may start. All calls may wait equally long, so none behind it can be late before it is.
 */
export class Pacer {
  readonly #gate: Gate;
  readonly #clock: Clock;
  readonly #schedule: Schedule;
  readonly #concurrency: number;
  readonly #maxWaitMs: number;
  readonly #maxQueue: number;
  readonly #learned: LearnedPace;
  readonly #line = new WaitingLine<WaitingCall>();
  #running = 0;
  #advancing = false;
  #callOff: (() => void) | undefined;

  constructor(gate: Gate = alwaysOpen, options: PaceOptions = {}) {
    checkOptions(options, { clock: "clock", schedule: "function" });
    this.#gate = gate;
    this.#clock = options.clock ?? systemClock;
    this.#schedule = options.schedule ?? systemSchedule;
    this.#concurrency = optionNumber("concurrency", options.concurrency, never, 1);
    this.#maxWaitMs = optionNumber("maxWaitMs", options.maxWaitMs, never, 0);
    this.#maxQueue = optionNumber("maxQueue", options.maxQueue, 10_000, 0);
    this.#learned = new LearnedPace({
      spreadBelow: optionNumber("spreadBelow", options.spreadBelow, 0.5, 0),
      maxSpacingMs: optionNumber("maxSpacingMs", options.maxSpacingMs, 10_000, 0),
    });
  }

  get waiting(): number {
    return this.#line.length;
  }

  get running(): number {
    return this.#running;
  }

  /** Whether it can be dropped without effect. */
  get idle(): boolean {
    return this.#line.length === 0 && this.#running === 0 && this.#learned.stopUntilMs <= this.#clock.nowMs();
  }

  async run<Answer>(call: () => Answer | PromiseLike<Answer>, options: TurnOptions = {}): Promise<Answer> {
    if (typeof call !== "function") throw invalidOption("call", `must be a function, but is ${typeof call}`);
    await this.turn(true, options);
    try {
      options.signal?.throwIfAborted();
      return await call();
    } finally {
      this.end();
    }
  }

  /** Resolves when it is this call's turn: it has taken its cost and, if it runs, counts as running. */
  turn(runs: boolean, options: TurnOptions = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      checkOptions(options, { signal: "signal" });
      const { signal } = options;
      signal?.throwIfAborted();
      const cost = optionNumber("cost", options.cost, 1, 1);
      // A cost that never passes must be refused now, not when it is first in line. A cost of 1 nearly always passes.
      if (cost !== 1 && !canEverPass(this.#gate(cost, true))) throw neverFits(cost);
      const abort = (): void => {
        giveUp();
        reject(signal?.reason);
      };
      const settle = (settled: () => void): void => {
        signal?.removeEventListener("abort", abort);
        settled();
      };
      signal?.addEventListener("abort", abort, { once: true });
      const giveUp = this.enter({
        cost,
        runs,
        start: () => settle(resolve),
        refuse: (reason) => settle(() => reject(reason)),
      });
    });
  }

  /** A turn without promises. Returns a function that cancels the wait, and does nothing afterwards. */
  enter(entrant: Entrant): () => void {
    const waiting: WaitingCall = {
      ahead: undefined,
      behind: undefined,
      entrant,
      deadlineMs: this.#clock.nowMs() + this.#maxWaitMs,
      inLine: true,
    };
    this.#line.join(waiting);
    if (this.#line.first === waiting) this.#advance();
    else if (!this.#advancing) this.#turnAway();
    return () => {
      if (!waiting.inLine) return;
      this.#leave(waiting);
      this.#advance();
    };
  }

  /** A running call has ended. */
  end(): void {
    this.#running -= 1;
    this.#advance();
  }

  /** `own` is whether the call that learns still counts as running: the server has counted that one. */
  learn(reading: RateLimitReading, own = true): void {
    this.#learned.learn(reading, this.#clock.nowMs(), Math.max(0, this.#running - (own ? 1 : 0)));
    this.#advance();
  }

  /** Lets the line move on as far as it may, and sets the timer to when it may again. */
  #advance(): void {
    // A call that starts may end at once, and a nested call finds that the line is already moving.
    if (this.#advancing) return;
    this.#advancing = true;
    try {
      while (this.#moveUp());
      this.#turnAway();
    } finally {
      this.#advancing = false;
    }
  }

  /** Lets the first in line go. False if it has to wait, or there is none. */
  #moveUp(): boolean {
    const first = this.#line.first;
    if (first === undefined) {
      this.#setTimer(undefined);
      return false;
    }
    const nowMs = this.#clock.nowMs();
    const due = this.#decideDue(first, nowMs);
    if (due.kind === "later" && due.atMs <= first.deadlineMs) {
      this.#setTimer(due.atMs - nowMs);
      return false;
    }
    const { entrant } = first;
    this.#leave(first);
    if (due.kind === "never") entrant.refuse(due.because);
    else if (due.kind === "later") entrant.refuse(tooLong(due.atMs - nowMs, this.#maxWaitMs));
    else {
      if (entrant.runs) this.#running += 1;
      this.#learned.started(nowMs, entrant.cost);
      entrant.start();
    }
    return true;
  }

  /** Refuses the newest calls while more wait than allowed. */
  #turnAway(): void {
    for (let last = this.#line.last; last !== undefined && this.#line.length > this.#maxQueue; last = this.#line.last) {
      this.#leave(last);
      last.entrant.refuse(queueFull(this.#line.length));
    }
    if (this.#line.length === 0) this.#setTimer(undefined);
  }

  #leave(waiting: WaitingCall): void {
    waiting.inLine = false;
    this.#line.leave(waiting);
  }

  /** `now` means that it has taken its cost. */
  #decideDue({ entrant, deadlineMs }: WaitingCall, nowMs: number): Due {
    const { runs, cost } = entrant;
    // It is unknown when another call ends, so the timer is for the deadline.
    if (runs && this.#running >= this.#concurrency)
      return { kind: "later", atMs: nowMs < deadlineMs ? deadlineMs : never };
    // Reported limits slow calls down and refuse none: at its deadline a call starts anyway.
    const heldMs = Math.max(this.#learned.stopUntilMs, Math.min(this.#learned.spacedFromMs, deadlineMs));
    if (heldMs > nowMs) return { kind: "later", atMs: heldMs };
    try {
      const { allowed, retryAfterMs } = this.#gate(cost);
      if (allowed) return { kind: "now" };
      if (retryAfterMs !== undefined) return { kind: "later", atMs: nowMs + retryAfterMs };
      return { kind: "never", because: neverFits(cost) };
    } catch (error) {
      return { kind: "never", because: error };
    }
  }

  #setTimer(waitMs: number | undefined): void {
    this.#callOff?.();
    this.#callOff = undefined;
    if (waitMs === undefined || waitMs === never) return;
    this.#callOff = this.#schedule(waitMs, () => {
      this.#callOff = undefined;
      this.#advance();
    });
  }
}

function canEverPass({ allowed, retryAfterMs }: ReturnType<Gate>): boolean {
  return allowed || retryAfterMs !== undefined;
}

function neverFits(cost: number): PaceError {
  return new PaceError(
    "never_fits",
    `a cost of ${cost} never fits into the limit, and waiting does not help; nothing was sent`,
  );
}

function queueFull(waiting: number): PaceError {
  return new PaceError("queue_full", `${waiting} calls are waiting already (maxQueue); nothing was sent`);
}

function tooLong(waitMs: number, maxWaitMs: number): PaceError {
  const known = waitMs === never ? undefined : Math.ceil(waitMs);
  const least = known === undefined ? "" : `, and not before ${known} ms from now`;
  return new PaceError(
    "wait_too_long",
    `no turn comes within ${maxWaitMs} ms (maxWaitMs)${least}; nothing was sent`,
    known,
  );
}
