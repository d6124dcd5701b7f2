import { systemClock } from "sluice";
import { checkNames, checkOptions, type OptionNames } from "../check-options.ts";
import type { HeaderSource } from "../reading/header-fields.ts";
import { type RateLimitReading, readRateLimit } from "../reading/read-rate-limit.ts";
import { createPaceLimit, type PaceLimit } from "./pace-limit.ts";
import { type PaceOptions, Pacer, type TurnOptions } from "./pacer.ts";

/**
 * Paces calls: first come, first served, each as soon as it may. One timer at most runs, and none while nobody waits.
 */
export interface Pace {
  /** Runs a call when its turn comes, and answers as it does. Rejects with a `PaceError` where no turn comes in time. */
  <Answer>(call: () => Answer | PromiseLike<Answer>, options?: TurnOptions): Promise<Answer>;
  /** Waits for a turn alone. It takes from the limit, and does not count as running. */
  wait(options?: TurnOptions): Promise<void>;
  /** Takes in what an answer says of limits: slows down before they are reached, and stops for as long as it is told to. */
  learn(said: HeaderSource | RateLimitReading): void;
  /** How many calls wait. */
  readonly waiting: number;
  /** How many calls run. */
  readonly running: number;
}

/**
 * A pace that keeps to a limit, or to several at once (`["10/s burst 5", "1000/h"]`), written as policies write windows.
 * Without one it keeps to what it learns from answers.
 */
export function pace(limit?: PaceLimit | undefined, options: PaceOptions = {}): Pace {
  checkOptions(options, { clock: "clock" });
  checkNames("pace", options, optionNames, foreign);
  const clock = options.clock ?? systemClock;
  const pacer = new Pacer(limit === undefined ? undefined : createPaceLimit(limit, clock)("self"), options);
  const learn = (said: HeaderSource | RateLimitReading): void =>
    pacer.learn(isReading(said) ? said : readRateLimit(said, { nowMs: clock.epochMs() }));
  const paced = <Answer>(call: () => Answer | PromiseLike<Answer>, turn?: TurnOptions): Promise<Answer> =>
    pacer.run(call, turn);
  const members = { wait: (turn?: TurnOptions): Promise<void> => pacer.turn(false, turn), learn };
  return Object.defineProperties(Object.assign(paced, members), {
    waiting: { get: () => pacer.waiting },
    running: { get: () => pacer.running },
  }) as Pace;
}

const optionNames: OptionNames<PaceOptions> = {
  concurrency: true,
  maxWaitMs: true,
  maxQueue: true,
  spreadBelow: true,
  maxSpacingMs: true,
  clock: true,
  schedule: true,
};

/** What other libraries call it. */
const foreign = {
  maxConcurrent: "did you mean concurrency?",
  limit: 'the limit comes first: pace("10/s", options)',
  minTime: 'write it as the limit: pace("1/200ms")',
  interval: 'write it as the limit: pace("10/s")',
  intervalCap: 'write it as the limit: pace("10/s")',
};

function isReading(said: HeaderSource | RateLimitReading): said is RateLimitReading {
  // Whatever else is handed in is read as headers, which says nothing where it is none.
  return typeof said === "object" && said !== null && "limits" in said && Array.isArray(said.limits);
}
