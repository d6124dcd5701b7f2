import { type Clock, systemClock } from "sluice";
import { checkNames, checkOptions, invalidOption, type OptionNames } from "../check-options.ts";
import { optionNumber } from "../option-number.ts";
import { PaceError, paceErrorAfter } from "../pacing/pace-error.ts";
import { createPaceLimit, type Gate, type PaceLimit } from "../pacing/pace-limit.ts";
import { type PaceOptions, Pacer } from "../pacing/pacer.ts";
import type { HeaderSource } from "../reading/header-fields.ts";
import { type RateLimitReading, readRateLimit } from "../reading/read-rate-limit.ts";
import { RetryBudget, type RetryBudgetOptions } from "../retry/retry-budget.ts";
import {
  decideWaitMs,
  findToldWaitMs,
  isRefusal,
  parseRetryOptions,
  type RetryOptions,
  type RetryRules,
} from "../retry/retry-rules.ts";
import { type Schedule, systemSchedule } from "../schedule.ts";

/** What callers may choose, whatever they call with. */
export interface SharedOptions extends RetryOptions {
  /**
   * How calls to one key are paced, by a `limit` of the caller's own and by what answers say. Absent: by answers alone.
   * False: not at all.
   */
  readonly pace?:
    | false
    | (Omit<PaceOptions, "maxWaitMs" | "clock" | "schedule"> & { readonly limit?: PaceLimit | undefined })
    | undefined;
  /** How many retries there may be beside requests, for each key. False: any number. */
  readonly budget?: false | Omit<RetryBudgetOptions, "clock"> | undefined;
  /** How many keys are remembered; the one that was used least recently goes first. Absent: 1000. */
  readonly maxKeys?: number | undefined;
  /** Absent: the machine's. */
  readonly clock?: Clock | undefined;
  /** Absent: `setTimeout`. */
  readonly schedule?: Schedule | undefined;
}

/** The same for callers of HTTP servers. */
export interface CallerOptions extends SharedOptions {
  /** Statuses that may mean "later". 429 always does, 503 with `Retry-After`, others where they tell how long. */
  readonly statuses?: readonly number[] | undefined;
  /** Told before each wait for another attempt. */
  readonly onWait?: ((event: WaitEvent) => void) | undefined;
}

/** The names of these options, for callers that add to them. */
export const sharedNames: OptionNames<SharedOptions> = {
  maxAttempts: true,
  maxWaitMs: true,
  random: true,
  pace: true,
  budget: true,
  maxKeys: true,
  clock: true,
  schedule: true,
};

export const callerNames: OptionNames<CallerOptions> = { ...sharedNames, statuses: true, onWait: true };

const paceNames: OptionNames<Exclude<NonNullable<SharedOptions["pace"]>, false>> = {
  limit: true,
  concurrency: true,
  maxQueue: true,
  spreadBelow: true,
  maxSpacingMs: true,
};

/** What other libraries call it. */
export const foreignNames: Readonly<Record<string, string>> = {
  retries: "did you mean maxAttempts? It counts the first attempt as well",
  retry: "did you mean maxAttempts?",
  limit: 'write pace: { limit: "10/s" }',
  concurrency: "write pace: { concurrency: 4 }",
};

/** A request failed, and is to be sent again after a wait. */
export interface WaitEvent {
  readonly key: string;
  /** The attempt that failed, starting at 1. */
  readonly attempt: number;
  readonly waitMs: number;
  /** The status it was refused with; undefined where there was no answer. */
  readonly status: number | undefined;
}

/** An answer, and what is known of its request. */
export interface Answered {
  readonly attempt: number;
  readonly status: number;
  readonly headers: HeaderSource;
  /** Whether the request may be sent again, and can be. */
  readonly repeatable: boolean;
}

const defaultStatuses: readonly number[] = [429, 503];

/** Calls that were refused together come back spread over at least this. */
const stopJitterMs = 500;

/** How many callers are looked at for one that may be forgotten without anybody noticing. */
const idleSearch = 16;

/** Longer ones cannot be counted. */
const maxKeyLength = 4096;

/** Everything that calls by one set of options share: a caller for each key, in bounded number. */
export class Callers {
  readonly rules: RetryRules;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly statuses: readonly number[];
  readonly #options: CallerOptions;
  readonly #maxKeys: number;
  readonly #gateOf: ((key: string) => Gate) | undefined;
  readonly #callers = new Map<string, Caller>();

  constructor(options: CallerOptions) {
    checkOptions(options, {
      pace: "false or settings",
      budget: "false or settings",
      statuses: "statuses",
      onWait: "function",
      clock: "clock",
      schedule: "function",
    });
    if (options.pace) checkNames("pace", options.pace, paceNames);
    if (options.budget) checkNames("budget", options.budget, { share: true, perMinute: true });
    this.#options = options;
    this.rules = parseRetryOptions(options);
    this.clock = options.clock ?? systemClock;
    this.schedule = options.schedule ?? systemSchedule;
    this.statuses = options.statuses ?? defaultStatuses;
    this.#maxKeys = optionNumber("maxKeys", options.maxKeys, 1000, 1);
    const limit = options.pace === false ? undefined : options.pace?.limit;
    if (limit !== undefined) this.#gateOf = createPaceLimit(limit, this.clock);
    // Wrong options are told here, and not by the first request.
    this.#create("");
  }

  /** Throws where a key of the caller's own is none: what is not counted by a key would not be limited at all. */
  find(key: string): Caller {
    if (typeof key !== "string" || key.length > maxKeyLength)
      throw invalidOption("key", `must give a text of at most ${maxKeyLength} characters`);
    const known = this.#callers.get(key);
    if (known !== undefined) {
      // What was used last stands last.
      this.#callers.delete(key);
      this.#callers.set(key, known);
      return known;
    }
    if (this.#callers.size >= this.#maxKeys) this.#forgetOne();
    const caller = this.#create(key);
    this.#callers.set(key, caller);
    return caller;
  }

  #create(key: string): Caller {
    const { pace, budget, onWait } = this.#options;
    const { clock, schedule } = this;
    const paceOptions = { ...pace, clock, schedule, maxWaitMs: this.rules.maxWaitMs };
    const pacer = pace === false ? undefined : new Pacer(this.#gateOf?.(key), paceOptions);
    return new Caller(key, this, pacer, budget === false ? undefined : new RetryBudget({ ...budget, clock }), onWait);
  }

  /** The least recently used of those that have nothing under way, if one is near; else the least recently used. */
  #forgetOne(): void {
    let looked = 0;
    let victim: string | undefined;
    for (const [key, caller] of this.#callers) {
      victim ??= key;
      if (caller.idle) victim = key;
      looked += 1;
      if (caller.idle || looked === idleSearch) break;
    }
    if (victim !== undefined) this.#callers.delete(victim);
  }
}

/** The calls to one key: their pace, their budget, and what is made of answers. */
export class Caller {
  readonly #key: string;
  readonly #callers: Callers;
  readonly #pacer: Pacer | undefined;
  readonly #budget: RetryBudget | undefined;
  readonly #onWait: ((event: WaitEvent) => void) | undefined;

  constructor(
    key: string,
    callers: Callers,
    pacer: Pacer | undefined,
    budget: RetryBudget | undefined,
    onWait: ((event: WaitEvent) => void) | undefined,
  ) {
    this.#key = key;
    this.#callers = callers;
    this.#pacer = pacer;
    this.#budget = budget;
    this.#onWait = onWait;
  }

  get idle(): boolean {
    return this.#pacer?.idle ?? true;
  }

  /** A request begins, with its first attempt. */
  begin(): void {
    this.#budget?.earn();
  }

  /** Makes an attempt, by its number, starting at 1, when its turn comes. */
  async run<Answer>(
    attempt: number,
    call: () => Promise<Answer>,
    signal: AbortSignal | null | undefined,
  ): Promise<Answer> {
    if (this.#pacer === undefined) {
      signal?.throwIfAborted();
      return call();
    }
    let started = false;
    const start = (): Promise<Answer> => {
      started = true;
      return call();
    };
    try {
      return await this.#pacer.run(start, { signal });
    } catch (error) {
      throw !started && attempt > 1 && error instanceof PaceError ? paceErrorAfter(error, attempt - 1) : error;
    }
  }

  /**
   * The same without promises: `start` is called at the attempt's turn, perhaps before this returns, and `end` when its answer
   * has begun. Returns what gives up waiting. Neither callback may throw.
   */
  enter(start: () => void, refuse: (reason: unknown) => void): () => void {
    if (this.#pacer !== undefined) return this.#pacer.enter({ cost: 1, runs: true, start, refuse });
    start();
    return () => undefined;
  }

  end(): void {
    this.#pacer?.end();
  }

  /**
   * Learns from an answer, and decides what becomes of it: how long to wait for another attempt, or undefined where this
   * answer is the last. To be asked once for each answer, while its attempt runs.
   */
  judge({ attempt, status, headers, repeatable }: Answered): number | undefined {
    const { statuses, clock } = this.#callers;
    const reading = readRateLimit(headers, { nowMs: clock.epochMs() });
    const refused = isRefusal(status, reading, statuses);
    const toldMs = findToldWaitMs(reading);
    this.learn(reading, refused ? toldMs : undefined);
    return refused && repeatable ? this.decideWait(attempt, toldMs) : undefined;
  }

  /** The same for an attempt that got no answer. */
  judgeFailure(attempt: number): number | undefined {
    return this.decideWait(attempt, undefined);
  }

  /**
   * Learns figures, and how long a refusal asks to wait. Only a refusal stops others: a `Retry-After` on a redirect, say, is
   * about that redirect. And only one that they can wait out: else one path that is closed for an hour would close all the
   * others, which the server may answer well. `running` is whether the attempt that learns has not ended yet.
   */
  learn({ limits }: RateLimitReading, refusedForMs: number | undefined, running = true): void {
    const { random, maxWaitMs } = this.#callers.rules;
    if (refusedForMs === undefined || refusedForMs > maxWaitMs) this.#pacer?.learn({ limits }, running);
    else {
      const retryAfterMs = Math.min(maxWaitMs, refusedForMs + Math.ceil(random() * stopJitterMs));
      this.#pacer?.learn({ limits, retryAfterMs }, running);
    }
  }

  /** How long to wait for another attempt, within `withinMs`; undefined where there is to be none. Spends of the budget. */
  decideWait(
    attempt: number,
    toldMs: number | undefined,
    withinMs: number = Number.POSITIVE_INFINITY,
  ): number | undefined {
    const { rules } = this.#callers;
    const maxWaitMs = Math.min(rules.maxWaitMs, withinMs);
    const waitMs = decideWaitMs(attempt, toldMs, { ...rules, maxWaitMs });
    if (waitMs === undefined || this.#budget?.spend() === false) return undefined;
    return waitMs;
  }

  /** Tells whoever wants to know that a wait begins. */
  announce(event: Omit<WaitEvent, "key">): void {
    this.#onWait?.({ key: this.#key, ...event });
  }
}
