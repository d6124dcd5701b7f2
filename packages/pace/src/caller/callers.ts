import type { Clock } from "sluice";
import { systemClock } from "sluice/internal";
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
  findRequestedWaitMs,
  isRefusal,
  parseRetryOptions,
  type RetryOptions,
  type RetryRules,
} from "../retry/retry-rules.ts";
import { type Schedule, systemSchedule } from "../schedule.ts";

/** The options that all kinds of callers share. */
export interface SharedOptions extends RetryOptions {
  /**
   * How calls to one key are paced: by your own `limit`, and by the limits that answers report. Default: by answers alone.
   * False: not at all.
   */
  readonly pace?:
    | false
    | (Omit<PaceOptions, "maxWaitMs" | "clock" | "schedule"> & { readonly limit?: PaceLimit | undefined })
    | undefined;
  /** How many retries are allowed in proportion to requests, for each key. False: any number. */
  readonly budget?: false | Omit<RetryBudgetOptions, "clock"> | undefined;
  /** How many keys are remembered; the least recently used is dropped first. Default: 1000. */
  readonly maxKeys?: number | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock | undefined;
  /** Default: `setTimeout`. */
  readonly schedule?: Schedule | undefined;
}

/** The same for callers of HTTP servers. */
export interface CallerOptions extends SharedOptions {
  /** Statuses that may mean "later". 429 always does, 503 with `Retry-After`, others if they say how long. */
  readonly statuses?: readonly number[] | undefined;
  /** Called before each wait for another attempt. */
  readonly onWait?: ((event: WaitEvent) => void) | undefined;
}

/** The names of these options, for callers that have more. */
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

/** Names in other libraries, and what to write here. */
export const foreignNames: Readonly<Record<string, string>> = {
  retries: "did you mean maxAttempts? It counts the first attempt as well",
  retry: "did you mean maxAttempts?",
  limit: 'write pace: { limit: "10/s" }',
  concurrency: "write pace: { concurrency: 4 }",
};

/** A request failed, and will be sent again after a wait. */
export interface WaitEvent {
  readonly key: string;
  /** The attempt that failed, starting at 1. */
  readonly attempt: number;
  readonly waitMs: number;
  /** The status it was refused with; undefined if there was no answer. */
  readonly status: number | undefined;
}

/** An answer, and the facts about its request. */
export interface Answered {
  readonly attempt: number;
  readonly status: number;
  readonly headers: HeaderSource;
  /** Whether the request can be sent again, and may be. */
  readonly repeatable: boolean;
}

const defaultStatuses: readonly number[] = [429, 503];

/** Calls that were refused together are retried spread over at least this. */
const stopJitterMs = 500;

/** How many callers are examined to find an idle one to drop. */
const idleSearch = 16;

/** Longer keys cannot be counted. */
const maxKeyLength = 4096;

/** What all calls with one set of options share: a bounded number of callers, one for each key. */
export class Callers {
  readonly rules: RetryRules;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly statuses: readonly number[];
  readonly #options: CallerOptions;
  readonly #maxKeys: number;
  readonly #gateFor: ((key: string) => Gate) | undefined;
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
    if (limit !== undefined) this.#gateFor = createPaceLimit(limit, this.clock);
    // Reports wrong options here, not at the first request.
    this.#create("");
  }

  /** Throws if a custom key is invalid: a call without a key would not be limited at all. */
  find(key: string): Caller {
    if (typeof key !== "string" || key.length > maxKeyLength)
      throw invalidOption("key", `must return a string of at most ${maxKeyLength} characters`);
    const known = this.#callers.get(key);
    if (known !== undefined) {
      // Recently used callers are last.
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
    const pacer = pace === false ? undefined : new Pacer(this.#gateFor?.(key), paceOptions);
    return new Caller(key, this, pacer, budget === false ? undefined : new RetryBudget({ ...budget, clock }), onWait);
  }

  /** The least recently used idle caller among the first few; else the least recently used. */
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

/** The calls to one key: their pace, their budget, and the decisions about answers. */
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
   * The same without promises: `start` is called at the attempt's turn, perhaps before this returns, and `end` when its
   * answer has begun. Returns a function that cancels the wait. Neither callback may throw.
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
   * Learns from an answer, and decides what to do with it: how long to wait for another attempt, or undefined if this
   * answer is final. Call it once for each answer, while its attempt runs.
   */
  judge({ attempt, status, headers, repeatable }: Answered): number | undefined {
    const { statuses, clock } = this.#callers;
    const reading = readRateLimit(headers, { nowMs: clock.epochMs() });
    const refused = isRefusal(status, reading, statuses);
    const requestedMs = findRequestedWaitMs(reading);
    this.learn(reading, refused ? requestedMs : undefined);
    return refused && repeatable ? this.decideWait(attempt, requestedMs) : undefined;
  }

  /** The same for an attempt that got no answer. */
  judgeFailure(attempt: number): number | undefined {
    return this.decideWait(attempt, undefined);
  }

  /**
   * Learns limits, and how long a refusal asks to wait. Only a refusal stops other calls: a `Retry-After` on a redirect is
   * about that redirect. And only a wait within `maxWaitMs` does: otherwise one path that is closed for an hour would stop
   * all the others. `running` is whether the attempt that learns is still running.
   */
  learn({ limits }: RateLimitReading, refusedForMs: number | undefined, running = true): void {
    const { random, maxWaitMs } = this.#callers.rules;
    if (refusedForMs === undefined || refusedForMs > maxWaitMs) this.#pacer?.learn({ limits }, running);
    else {
      const retryAfterMs = Math.min(maxWaitMs, refusedForMs + Math.ceil(random() * stopJitterMs));
      this.#pacer?.learn({ limits, retryAfterMs }, running);
    }
  }

  /** How long to wait for another attempt, within `withinMs`; undefined for no further attempt. Spends from the budget. */
  decideWait(
    attempt: number,
    requestedMs: number | undefined,
    withinMs: number = Number.POSITIVE_INFINITY,
  ): number | undefined {
    const { rules } = this.#callers;
    const maxWaitMs = Math.min(rules.maxWaitMs, withinMs);
    const waitMs = decideWaitMs(attempt, requestedMs, { ...rules, maxWaitMs });
    if (waitMs === undefined || this.#budget?.spend() === false) return undefined;
    return waitMs;
  }

  /** Announces that a wait begins. */
  announce(event: Omit<WaitEvent, "key">): void {
    this.#onWait?.({ key: this.#key, ...event });
  }
}
