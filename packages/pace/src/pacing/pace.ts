import { systemClock } from "sluice/internal";
import { checkNames, checkOptions, type OptionNames } from "../check-options.ts";
import type { HeaderSource } from "../reading/header-fields.ts";
import { type RateLimitReading, readRateLimit } from "../reading/read-rate-limit.ts";
import { createPaceLimit, type PaceLimit } from "./pace-limit.ts";
import { type PaceOptions, Pacer, type TurnOptions } from "./pacer.ts";

/**
 * Paces calls: first come, first served, each as soon as it may. At most one timer runs, and none while no call waits.
 */
export interface Pace {
  /** Runs a call when its turn comes, and settles as it does. Rejects with a `PaceError` if no turn comes in time. */
  <Answer>(call: () => Answer | PromiseLike<Answer>, options?: TurnOptions): Promise<Answer>;
  /** Only waits for a turn. It takes from the limit, and does not count as running. */
  wait(options?: TurnOptions): Promise<void>;
  /** Learns the limits in an answer: slows down before they are reached, and stops for as long as the server asks. */
  learn(source: HeaderSource | RateLimitReading): void;
  /** How many calls wait. */
  readonly waiting: number;
  /** How many calls run. */
  readonly running: number;
}

/**
 * A pace that keeps to a limit, or to several at once (`["10/s burst 5", "1000/h"]`), written as policies write windows.
 * Without one it keeps to the limits it learns from answers.
 */
export function pace(limit?: PaceLimit | undefined, options: PaceOptions = {}): Pace {
  checkOptions(options, { clock: "clock" });
  checkNames("pace", options, optionNames, foreign);
  const clock = options.clock ?? systemClock;
  const pacer = new Pacer(limit === undefined ? undefined : createPaceLimit(limit, clock)("self"), options);
  const learn = (source: HeaderSource | RateLimitReading): void =>
    pacer.learn(isReading(source) ? source : readRateLimit(source, { nowMs: clock.epochMs() }));
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

/** Names in other libraries, and what to write here. */
const foreign = {
  maxConcurrent: "did you mean concurrency?",
  limit: 'the limit comes first: pace("10/s", options)',
  minTime: 'write it as the limit: pace("1/200ms")',
  interval: 'write it as the limit: pace("10/s")',
  intervalCap: 'write it as the limit: pace("10/s")',
};

function isReading(source: HeaderSource | RateLimitReading): source is RateLimitReading {
  // Anything else is read as headers; a value that is not headers yields no limits.
  return typeof source === "object" && source !== null && "limits" in source && Array.isArray(source.limits);
}
