import { untrackedList } from "sluice/internal";
import type { CompiledWindow, LimitOutcome, LimitRecord, OneOutcome, ResolvedLimit, WindowReading } from "sluice/store";
import {
  createVerdict,
  decideArrival,
  decideCount,
  decideDistinct,
  decideSliding,
  fits,
  isTaken,
  type LookedAt,
  outcomesFromPlan,
  type TakePlan,
  takeArrival,
  type WindowVerdict,
  type WritableVerdict,
} from "sluice/store";
import { type Answer, GivenAnswer, type Held, hasRecord, none, type Question, type Reply } from "./question.ts";
import { findCode, unitsPerMs, worthUnits } from "./window-code.ts";

/** The start of every script's reply. */
export interface ReplyHead {
  readonly nowUs: number;
  /** It ran after its deadline, and charged nothing. */
  readonly late: boolean;
  /** How many keys held a value that is not ours. */
  readonly foreign: number;
  readonly healed: number;
}

/** How many numbers of a reply its head takes. */
export const headLength = 4;

export function decodeHead(reply: unknown): ReplyHead {
  if (!Array.isArray(reply) || reply.length < 2) throw new Error(`a script answered ${JSON.stringify(reply)}`);
  const [nowUs, late, foreign = 0, healed = 0] = reply as number[];
  return { nowUs: Number(nowUs), late: late === 1, foreign, healed };
}

/** `take-arrivals`: how far ahead of now each window was found. */
export function decodeAheads(reply: unknown): readonly number[] {
  const aheads = (reply as readonly unknown[])[headLength];
  if (!Array.isArray(aheads)) throw new Error(`a script answered ${JSON.stringify(reply)}`);
  return aheads as readonly number[];
}

/** `take-arrivals`: two texts for each window that is held. */
export function decodeMarks(reply: unknown): readonly string[] {
  const marks = (reply as readonly unknown[])[headLength + 1];
  return Array.isArray(marks) ? (marks as readonly string[]) : noMarks;
}

const noMarks: readonly string[] = [];

/** Each check's counter as one number: how far ahead of now it was found. The rest follows by the same arithmetic. */
export function decodeArrival(window: CompiledWindow, cost: number, ahead: number, into: OneOutcome): void {
  const aheadMs = ahead / unitsPerMs;
  into.window = window;
  into.queuePosition = 0;
  into.queueDelayMs = 0;
  takeArrival(window, ahead <= findCode(window).furthest ? aheadMs : -aheadMs, cost, 0, into);
}

/** An examined window, to be overwritten. */
interface Look extends LookedAt {
  limit: number;
  window: CompiledWindow;
  readonly verdict: WritableVerdict;
}

const nothingRefused: ReadonlySet<number> = new Set();
const enforcedRefused: ReadonlySet<number> = new Set([0]);

/** The windows of one request after the other. */
const looks: Look[] = [];
const takenPlan: TakePlan = { steps: looks, refused: nothingRefused };
const deniedPlan: TakePlan = { steps: looks, refused: enforcedRefused };

/** The same for several windows, starting with the number at `begin`. */
export function decodeArrivals(
  limits: readonly ResolvedLimit[],
  aheads: readonly number[],
  begin: number,
  nowUs: number,
  held?: Held,
): Answer {
  const taken = lookAt(limits, aheads, begin);
  const outcomes = outcomesFromPlan(limits, taken ? takenPlan : deniedPlan, true, untrackedList());
  return new GivenAnswer(taken, nowUs / 1000, outcomes, undefined, undefined, false, none, held);
}

/** The outcomes of limits whose take is given back: how they stood before it. */
export function outcomesBefore(limits: readonly ResolvedLimit[], { aheads }: Held): readonly LimitOutcome[] {
  lookAt(limits, aheads, 0);
  return outcomesFromPlan(limits, takenPlan, false);
}

/** Whether all of them fit. */
function lookAt(limits: readonly ResolvedLimit[], aheads: readonly number[], begin: number): boolean {
  let count = 0;
  let taken = true;
  for (let limit = 0; limit < limits.length; limit++) {
    const { windows, cost } = limits[limit]!;
    for (const window of windows) {
      looks[count] ??= { limit, window, verdict: createVerdict(), blockedMs: 0, newlyBlockedMs: 0 };
      const look = looks[count]!;
      look.limit = limit;
      look.window = window;
      arrivalVerdict(window, cost, aheads[begin + count]!, look.verdict);
      if (look.verdict.fits !== "now") taken = false;
      count += 1;
    }
  }
  looks.length = count;
  return taken;
}

/** Scripts' answers to a question, as numbers. */
export const answers = { denied: 0, taken: 1, takenBefore: 2, conflict: 3, outside: 4 } as const;
export const numbersPerWindow = 5;

/** `take` and `peek`: per question an answer, its time and its receipt, then five numbers per window. */
export function decodePlan(questions: readonly Question[], reply: readonly (number | string)[]): readonly Reply[] {
  let at = headLength;
  return questions.map((question): Reply => {
    const { limits, operation, idScope } = question;
    const answer = Number(reply[at]);
    const nowUs = Number(reply[at + 1]);
    const receipt = String(reply[at + 2]);
    at += 3;
    const begin = at;
    for (const limit of limits) at += numbersPerWindow * (limit.windows.length + (hasRecord(question, limit) ? 1 : 0));
    if (answer === answers.conflict) return { kind: "conflict" };
    if (answer === answers.outside) return { kind: "outside" };
    const numbers = reply as readonly number[];
    const plan = decodeSteps(limits, numbers, begin, nowUs / 1000, operation === "take", question);
    const taken = answer === answers.taken || answer === answers.takenBefore;
    const isTold = operation === "peek" || question.record === true;
    const given = new GivenAnswer(
      operation === "take" && taken,
      nowUs / 1000,
      answer === answers.takenBefore
        ? allowedAgain(limits, plan)
        : outcomesFromPlan(limits, plan, operation === "take", untrackedList()),
      idScope === undefined ? undefined : plan,
      receipt === "" ? undefined : receipt,
      answer === answers.takenBefore,
      isTold ? numbers.slice(begin, at) : none,
      undefined,
      decodeRecords(question, numbers, begin, nowUs / 1000, (group) => operation === "take" && isTaken(plan, group)),
    );
    return { kind: "answer", answer: given };
  });
}

/**
 * A take stays taken, even if the limit was lowered since and would no longer allow it. Only then do its numbers differ
 * from the first time: they are those of the limit as it is now.
 */
function allowedAgain(limits: readonly ResolvedLimit[], plan: TakePlan): LimitOutcome[] {
  return outcomesFromPlan(limits, plan, true).map((outcome, i) =>
    outcome.fits === "now" || limits[i]!.group !== 0 ? outcome : { ...outcome, fits: "now", retryAfterMs: 0 },
  );
}

/** `take-counts`: one, two or three numbers per window, by its kind. */
export function decodeCounts(questions: readonly Question[], reply: readonly unknown[]): readonly Reply[] {
  const numbers = decodeAheads(reply);
  const nowMs = Number(reply[0]) / 1000;
  let at = 0;
  return questions.map(({ limits }): Reply => {
    const steps = untrackedList<LookedAt>();
    let taken = true;
    for (let i = 0; i < limits.length; i++) {
      const { windows, cost } = limits[i]!;
      for (const window of windows) {
        const verdict = decodeVerdict(window, cost, nowMs, numbers[at]!, numbers[at + 1]!, numbers[at + 2]!);
        at += window.kind === "arrival" ? 1 : window.kind === "count" ? 2 : 3;
        steps.push(new Step(i, window, verdict, 0));
        if (verdict.fits !== "now") taken = false;
      }
    }
    const plan: TakePlan = { steps, refused: taken ? nothingRefused : enforcedRefused };
    const outcomes = outcomesFromPlan(limits, plan, true, untrackedList());
    return { kind: "answer", answer: new GivenAnswer(taken, nowMs, outcomes) };
  });
}

/** `charge`: one answer per question. */
export function decodeCharges(questions: readonly Question[], reply: readonly number[]): readonly Reply[] {
  // One question outside of its bounds keeps the rest of the call from being charged too.
  const outside = questions.some((_, i) => reply[headLength + i] === answers.outside);
  return questions.map(() => (outside ? { kind: "outside" } : { kind: "answer", answer: charged }));
}

/** `block`: a reply that is not late answers all of them. */
export function decodeBlocks(questions: readonly Question[]): readonly Reply[] {
  return questions.map(() => ({ kind: "answer", answer: charged }));
}

const charged: Answer = {
  taken: true,
  atMs: 0,
  outcomes: [],
  plan: undefined,
  receipt: undefined,
  replayed: false,
  numbers: none,
};

/** Windows as the script found them, each described for its limit's cost. */
export function decodeSteps(
  limits: readonly ResolvedLimit[],
  numbers: readonly number[],
  begin: number,
  nowMs: number,
  carriesOut: boolean,
  question?: Question,
): TakePlan {
  const steps = untrackedList<LookedAt>();
  let refused: Set<number> | undefined;
  let at = begin;
  for (let i = 0; i < limits.length; i++) {
    const { windows, cost, group } = limits[i]!;
    for (const window of windows) {
      const verdict = decodeVerdict(window, cost, nowMs, numbers[at]!, numbers[at + 1]!, numbers[at + 2]!);
      const step = new Step(i, window, verdict, numbers[at + 4]!);
      at += numbersPerWindow;
      steps.push(step);
      if (fits(step)) continue;
      refused ??= new Set();
      refused.add(group);
    }
    if (question !== undefined && hasRecord(question, limits[i]!)) at += numbersPerWindow;
  }
  const plan = { steps, refused: refused ?? nothingRefused };
  if (carriesOut) noteBlocks(limits, plan);
  return plan;
}

/** A class, for the same reason as answers. */
class Step implements LookedAt {
  readonly limit: number;
  readonly window: CompiledWindow;
  readonly verdict: WindowVerdict;
  readonly blockedMs: number;
  newlyBlockedMs = 0;

  constructor(limit: number, window: CompiledWindow, verdict: WindowVerdict, blockedMs: number) {
    this.limit = limit;
    this.window = window;
    this.verdict = verdict;
    this.blockedMs = blockedMs;
  }
}

/** The outcomes of limits whose counters were never used. */
export function unused(limits: readonly ResolvedLimit[], nowMs: number): LimitOutcome[] {
  const windows = limits.reduce((sum, limit) => sum + limit.windows.length, 0);
  const plan = decodeSteps(limits, new Array<number>(numbersPerWindow * windows).fill(0), 0, nowMs, false);
  return outcomesFromPlan(limits, plan, false);
}

/** A denial that waiting would cure begins a block, and does not renew one: as in the script. */
function noteBlocks(limits: readonly ResolvedLimit[], plan: TakePlan): void {
  for (const step of plan.steps) {
    const { limit, group } = limits[step.limit]!;
    if (limit.blockForMs === 0 || isTaken(plan, group) || (group !== 0 && plan.refused.has(0))) continue;
    if (step.verdict.fits === "later" && step.blockedMs === 0) step.newlyBlockedMs = limit.blockForMs;
  }
}

/** The state that the script found, described by Sluice's own algorithms. */
function decodeVerdict(
  window: CompiledWindow,
  cost: number,
  nowMs: number,
  one: number,
  two: number,
  three: number,
): WindowVerdict {
  switch (window.kind) {
    case "arrival":
      return arrivalVerdict(window, cost, one);
    case "count":
      return decideCount(window, one, two, cost, nowMs, 0);
    case "sliding":
      return decideSliding(window, one, two, three, cost, nowMs, 0);
    case "log":
      return logVerdict(window, cost, one, two, three);
    case "distinct":
      return decideDistinct(window, one, two, three === 1, nowMs, 0);
  }
}

/** On a clock that reads 0 now. Only debt is further ahead than the tolerance, and is marked by its sign. */
function arrivalVerdict(window: CompiledWindow, cost: number, ahead: number, into?: WritableVerdict): WindowVerdict {
  const aheadMs = ahead / unitsPerMs;
  return decideArrival(window, ahead <= findCode(window).furthest ? aheadMs : -aheadMs, cost, 0, into);
}

/** How each window of a peeked limit stands, for people. */
export function decodeReadings(limit: ResolvedLimit, { numbers, atMs }: Answer): readonly WindowReading[] {
  return readingsAt(limit, numbers, 0, atMs, false);
}

/** The same, starting with the number at `begin`; after its cost, if that was taken. */
function readingsAt(
  { windows, cost }: ResolvedLimit,
  numbers: readonly number[],
  begin: number,
  atMs: number,
  taken: boolean,
): readonly WindowReading[] {
  return windows.map((window, i) => {
    const at = begin + numbersPerWindow * i;
    const [one, two, three, four] = numbers.slice(at, at + 4) as [number, number, number, number];
    const verdict = decodeVerdict(window, cost, atMs, one, two, three);
    if (!taken || !window.charges) {
      const { remaining, resetAfterMs } = verdict;
      return { window, remaining, resetAfterMs, state: decodeQuantities(window, atMs, one, two, three, four) };
    }
    const { remainingAfter: remaining, resetAfterTakeMs: resetAfterMs } = verdict;
    const state =
      window.kind === "arrival"
        ? decodeQuantities(window, atMs, one + worthUnits(window, cost), 0, 0, 0)
        : decodeQuantities(window, atMs, one, two + (window.kind === "distinct" ? three : cost), three, four + 1);
    return { window, remaining, resetAfterMs, state };
  });
}

/** The record of each limit, starting with the number at `begin`. Undefined if no limit has one. */
export function decodeRecords(
  question: Question,
  numbers: readonly number[],
  begin: number,
  atMs: number,
  isGroupTaken: (group: number) => boolean,
): readonly (LimitRecord | undefined)[] | undefined {
  const { limits, record } = question;
  if (!limits.some((limit) => hasRecord(question, limit))) return undefined;
  let at = begin;
  return limits.map((limit): LimitRecord | undefined => {
    const first = at;
    at += numbersPerWindow * limit.windows.length;
    if (!hasRecord(question, limit)) return undefined;
    const [updatedUs, denied] = numbers.slice(at, at + 2) as [number, number];
    at += numbersPerWindow;
    return {
      denied,
      updatedMs: updatedUs === 0 ? undefined : updatedUs / 1000,
      windows: record === true ? readingsAt(limit, numbers, first, atMs, isGroupTaken(limit.group)) : [],
    };
  });
}

function decodeQuantities(
  window: CompiledWindow,
  nowMs: number,
  one: number,
  two: number,
  three: number,
  four: number,
): Record<string, number> {
  switch (window.kind) {
    case "arrival":
      return { aheadMs: one / unitsPerMs };
    case "count":
      return { count: two };
    case "sliding":
      return { current: two, previous: three, untilEndMs: one - window.perMs - nowMs };
    case "log":
      return { entries: four };
    case "distinct":
      return { values: two };
  }
}

function logVerdict(
  window: CompiledWindow,
  cost: number,
  used: number,
  waitMs: number,
  resetMs: number,
): WindowVerdict {
  const { capacity, perMs } = window;
  const verdict = cost > capacity ? "never" : used + cost <= capacity ? "now" : "later";
  // Answers remembered by an earlier release do not have it: then use the time when everything is freed.
  const moreMs = waitMs > 0 ? waitMs : resetMs;
  return {
    fits: verdict,
    remaining: Math.max(capacity - used, 0),
    remainingAfter: Math.max(capacity - used - cost, 0),
    retryAfterMs: verdict === "now" ? 0 : verdict === "later" ? waitMs : Number.POSITIVE_INFINITY,
    resetAfterMs: resetMs,
    resetAfterTakeMs: Math.ceil(perMs),
    moreAfterMs: used === 0 ? Number.POSITIVE_INFINITY : moreMs,
    moreAfterTakeMs: used === 0 ? Math.ceil(perMs) : moreMs,
    queuePosition: 0,
    queueDelayMs: 0,
    word0: 0,
    word1: 0,
    word2: 0,
  };
}
