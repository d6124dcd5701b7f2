import type { CompiledWindow, ResolvedLimit } from "sluice/store";
import { onceRetentionMs } from "sluice/store";
import type { RedisArgument } from "../connect/redis-connection.ts";
import type { KeyNames } from "../place/key-names.ts";
import { identityCode } from "../place/key-names.ts";
import { CounterNumbers } from "./counter-numbers.ts";
import { KeyList } from "./key-list.ts";
import { newName } from "./new-name.ts";
import {
  type AnyArrivals,
  ArrivalQuestion,
  ArrivalStep,
  ArrivalsQuestion,
  type HeldNumbers,
  hasRecord,
  type Question,
} from "./question.ts";
import { encodeValue } from "./value-code.ts";
import {
  creditUnits,
  findCode,
  findRate,
  findShape,
  kindNumber,
  type RateArguments,
  takeWorthUnits,
  type WindowCode,
  worthUnits,
} from "./window-code.ts";

/** Keys and arguments of one script call. */
export interface Call {
  readonly keys: readonly string[];
  readonly args: readonly RedisArgument[];
}

/** This many keys can be numbered by letters of one byte each: a call that is all text is written in one go. */
export const mostPerCall = 127;

/** Only one call is encoded at a time. */
const numbers = new CounterNumbers(mostPerCall);
const requests = Buffer.alloc(4 * mostPerCall);
/** By the number of a counter: the number of its mark, 0 if it has none yet. */
const markNumbers = new Uint8Array(mostPerCall + 1);

/** Added to the number of windows of a request that is held. */
const heldFlag = 64;

/** `take-arrivals`: see its header. At most `mostPerCall` windows in all. */
export function encodeArrivals(questions: readonly AnyArrivals[], names: KeyNames, deadlineMs: number): Call {
  const steps = listSteps(questions);
  const { keys, marks, longestHoldMs, rates, bytes } = encodeRequests(questions, steps, names);
  const args: RedisArgument[] = [String(deadlineMs), bytes, String(marks.length), String(rates.length)];
  for (const { worth, full, tolerance, furthest, life } of rates) args.push(worth, full, tolerance, furthest, life);
  if (marks.length === 0) return { keys, args };
  args.push(newName(), String(Math.ceil(longestHoldMs)));
  keys.push(...marks);
  return { keys, args };
}

/** `take-counts`: see its header. At most `mostPerCall` windows in all. */
export function encodeCounts(questions: readonly Question[], names: KeyNames, deadlineMs: number): Call {
  const requests = questions.map(({ limits }) => new ArrivalsQuestion(limits));
  const { keys, rates, bytes } = encodeRequests(requests, listSteps(requests), names);
  const kinds = rates.map(({ window }) => findCode(window).kind).join("");
  const args: RedisArgument[] = [String(deadlineMs), bytes, kinds];
  for (const { worth, full, tolerance, furthest, life } of rates) args.push(worth, full, tolerance, furthest, life);
  return { keys, args };
}

interface EncodedRequests {
  readonly keys: string[];
  readonly marks: readonly string[];
  readonly longestHoldMs: number;
  readonly rates: readonly RateArguments[];
  /** Which windows, rates and keys each request has. Empty if each has one window, the first rate, and a separate key, in order. */
  readonly bytes: string;
}

function encodeRequests(
  questions: readonly AnyArrivals[],
  steps: readonly ArrivalStep[],
  names: KeyNames,
): EncodedRequests {
  const keys: string[] = [];
  const marks: string[] = [];
  let longestHoldMs = 0;
  const rates: RateArguments[] = [];
  // The last rate encountered, almost always the same one.
  let rate: RateArguments | undefined;
  let rateNumber = 0;
  let at = 0;
  let next = 0;
  let inOrder = true;
  numbers.begin(steps);
  for (const { count, holdMs } of questions) {
    if (count !== 1 || holdMs > 0) inOrder = false;
    if (holdMs > 0 && longestHoldMs === 0) markNumbers.fill(0);
    longestHoldMs = Math.max(longestHoldMs, holdMs);
    requests[at++] = holdMs > 0 ? heldFlag + count : count;
    for (const end = next + count; next < end; next++) {
      const { window, subject, cost } = steps[next]!;
      const code = findCode(window);
      if (rate?.window !== window || rate.cost !== cost) {
        rate = findRate(window, code, cost);
        if (!rates.includes(rate)) rates.push(rate);
        rateNumber = rates.indexOf(rate) + 1;
      }
      const number = numbers.numberAt(next);
      if (number > keys.length) keys.push(names.counter(code.code, subject));
      requests[at++] = rateNumber;
      requests[at++] = number;
      if (holdMs === 0) continue;
      if (markNumbers[number] === 0) markNumbers[number] = marks.push(names.mark(code.code, subject));
      requests[at++] = markNumbers[number]!;
    }
  }
  if (rates.length !== 1 || keys.length !== steps.length) inOrder = false;
  return { keys, marks, longestHoldMs, rates, bytes: inOrder ? "" : requests.toString("latin1", 0, at) };
}

/** `give-arrivals`: see its header. */
export function encodeGiveBack(limits: readonly ResolvedLimit[], held: HeldNumbers, names: KeyNames): Call {
  const keys: string[] = [];
  const args: RedisArgument[] = [String(held.nowUs)];
  let at = 0;
  for (const { windows, subject, cost } of limits) {
    for (const window of windows) {
      const code = findCode(window);
      keys.push(names.counter(code.code, subject), names.mark(code.code, subject));
      const { worth, tolerance } = findRate(window, code, cost);
      args.push(worth, tolerance, String(held.aheads[at]! + Number(worth)));
      args.push(held.marks[2 * at]!, held.marks[2 * at + 1]!);
      at += 1;
    }
  }
  return { keys, args };
}

/** The windows of all questions. */
function listSteps(questions: readonly AnyArrivals[]): readonly ArrivalStep[] {
  const steps: ArrivalStep[] = [];
  for (const question of questions) {
    if (question instanceof ArrivalQuestion) steps.push(question);
    else {
      for (const { windows, subject, cost } of question.limits)
        for (const window of windows) steps.push(new ArrivalStep(window, subject, cost));
    }
  }
  return steps;
}

/** `block`: see its header. Among blocks of one subject in a call, the longest counts. */
export function encodeBlocks(questions: readonly Question[], names: KeyNames, deadlineMs: number): Call {
  const blocks = new Map<string, { readonly forMs: number; readonly blockForMs: number }>();
  for (const { limits, forMs = 0 } of questions) {
    for (const { limit, subject } of limits) {
      const key = blockKey(names, limit, subject);
      const known = blocks.get(key) ?? { forMs: 0, blockForMs: 0 };
      blocks.set(key, {
        forMs: Math.max(known.forMs, forMs),
        blockForMs: Math.max(known.blockForMs, limit.blockForMs),
      });
    }
  }
  const args = [...blocks.values()].flatMap(({ forMs, blockForMs }) => [String(forMs), String(blockForMs)]);
  return { keys: [...blocks.keys()], args: [String(deadlineMs), ...args] };
}

const headBytes = 9;
const windowBytes = 66;

/** `take`, `peek` and `charge`: see windows.lua. `serverNowMs` is the server's time as far as we know it. */
export function encodePlan(
  questions: readonly Question[],
  names: KeyNames,
  deadlineMs: number,
  serverNowMs: number,
): Call {
  const keys = new KeyList();
  const args: RedisArgument[] = [String(deadlineMs)];
  let windowCount = 0;
  for (const question of questions) windowCount += stepCount(question);
  const plan = Buffer.allocUnsafe(headBytes * questions.length + windowBytes * windowCount);
  args.push(plan);
  let at = 0;
  for (const question of questions) {
    const { limits, operation, id, receipt, reservedMs } = question;
    const takes = operation === "take";
    const steps = stepCount(question);
    const withOwn = takes && (id !== undefined || receipt !== undefined);
    plan.writeUInt16LE(steps, at);
    const isHold = takes && receipt !== undefined && reservedMs !== undefined;
    plan[at + 2] = (id === undefined ? 0 : 1) + (receipt === undefined ? 0 : 2) + (isHold ? 4 : 0);
    plan.writeUInt16LE(takes && id !== undefined ? keys.add(names.requestId(id, question.idScope)) : 0, at + 3);
    const receiptKey = receipt === undefined ? undefined : isHold ? names.hold(receipt) : names.receipt(receipt);
    plan.writeUInt16LE(takes && receiptKey !== undefined ? keys.add(receiptKey) : 0, at + 5);
    plan.writeUInt16LE(withOwn ? args.length + 1 : 0, at + 7);
    if (withOwn)
      args.push(
        question.fingerprint,
        String(question.idTtlMs),
        receipt ?? "",
        String(question.receiptLifeMs ?? receiptLifeMs(limits)),
      );
    if (isHold) args.push(String(reservedMs), names.holdIndex(), ...renderHeldWindows(question, names));
    at += headBytes;
    for (const resolved of limits) {
      for (const window of resolved.windows) {
        // Values are not given back.
        const canGive = (takes && receipt !== undefined) || (operation === "charge" && resolved.cost < 0);
        const marked = canGive && window.kind !== "distinct";
        writeWindow(plan, at, resolved, window, keys, names, marked, operation, serverNowMs);
        if (window.kind === "distinct") {
          const [b, c] = findValueShape(resolved, window, keys, names, args);
          plan.writeDoubleLE(b, at + 34);
          plan.writeDoubleLE(c, at + 42);
        }
        at += windowBytes;
      }
      if (!hasRecord(question, resolved)) continue;
      writeRecord(plan, at, resolved, keys, names);
      at += windowBytes;
    }
  }
  return { keys: keys.names, args };
}

/** What settling a hold has to know of each window, and of each record nothing. */
function renderHeldWindows(question: Question, names: KeyNames): string[] {
  return question.limits.flatMap((resolved) => {
    const windows = resolved.windows.map((window) => {
      const { kind, code } = findCode(window);
      if (kind > kindNumber.wideArrival) return "0 0 ";
      return `${window.source.limit} ${window.perMs} ${names.held(code, resolved.subject)}`;
    });
    return hasRecord(question, resolved) ? [...windows, ""] : windows;
  });
}

/** How many windows a question has, including its records. */
function stepCount(question: Question): number {
  let steps = 0;
  for (const resolved of question.limits) steps += resolved.windows.length + (hasRecord(question, resolved) ? 1 : 0);
  return steps;
}

/** Long enough for everything that could still be given back; the same for every receipt of these limits. */
function receiptLifeMs(limits: readonly ResolvedLimit[]): number {
  let longest = 0;
  for (const { windows } of limits) for (const window of windows) longest = Math.max(longest, findCode(window).lifeMs);
  return Math.max(longest, 1000);
}

function writeWindow(
  plan: Buffer,
  at: number,
  { limit, subject, cost, group }: ResolvedLimit,
  window: CompiledWindow,
  keys: KeyList,
  names: KeyNames,
  marked: boolean,
  operation: Question["operation"],
  serverNowMs: number,
): void {
  const code = findCode(window);
  const blocks = limit.blockable && operation !== "charge";
  plan[at] = code.kind;
  plan.writeUInt16LE(group, at + 1);
  plan[at + 3] = window.charges ? 1 : 0;
  plan.writeUInt16LE(keys.add(names.counter(code.code, subject)), at + 4);
  plan.writeUInt16LE(blocks ? keys.add(blockKey(names, limit, subject)) : 0, at + 6);
  plan.writeUInt16LE(marked ? keys.add(names.mark(code.code, subject)) : 0, at + 8);
  const [a, b, c, life] = findShape(window, code, worthIn(window, code, cost, operation), serverNowMs);
  plan.writeDoubleLE(cost, at + 10);
  plan.writeDoubleLE(code.capacity, at + 18);
  plan.writeDoubleLE(a, at + 26);
  plan.writeDoubleLE(b, at + 34);
  plan.writeDoubleLE(c, at + 42);
  plan.writeDoubleLE(limit.blockForMs, at + 50);
  plan.writeDoubleLE(life, at + 58);
}

/** What `b` and `c` mean for a window of distinct values, whose value is added to the arguments: see windows.lua. */
export function findValueShape(
  { subject, value = "" }: ResolvedLimit,
  window: CompiledWindow,
  keys: KeyList,
  names: KeyNames,
  args: RedisArgument[],
): readonly [b: number, c: number] {
  const { bytes, place } = encodeValue(value);
  const argument = args.push(bytes);
  return [place, keys.add(names.values(findCode(window).code, subject)) * 65_536 + argument];
}

function writeRecord(
  plan: Buffer,
  at: number,
  { limit, windows, subject, cost, group }: ResolvedLimit,
  keys: KeyList,
  names: KeyNames,
): void {
  // A block outlasts idle windows.
  let longestMs = limit.blockForMs;
  for (const window of windows) longestMs = Math.max(longestMs, findCode(window).lifeMs);
  plan.fill(0, at, at + windowBytes);
  plan[at] = kindNumber.record;
  plan.writeUInt16LE(group, at + 1);
  plan.writeUInt16LE(keys.add(recordKey(names, limit, subject)), at + 4);
  plan.writeDoubleLE(cost, at + 10);
  plan.writeDoubleLE(windows.length, at + 26);
  plan.writeDoubleLE(Math.min(Math.max(longestMs, 1000), onceRetentionMs), at + 58);
}

export function recordKey(names: KeyNames, limit: ResolvedLimit["limit"], subject: string): string {
  return names.counter(identityCode(`${limit.identity}|record`), subject);
}

export function blockKey(names: KeyNames, limit: ResolvedLimit["limit"], subject: string): string {
  return names.counter(identityCode(`${limit.identity}|block`), subject);
}

/** What a cost is worth in units of arrival time; 0 if it is not counted in time. */
function worthIn(window: CompiledWindow, code: WindowCode, cost: number, operation: Question["operation"]): number {
  if (code.kind > kindNumber.wideArrival) return 0;
  if (cost < 0) return creditUnits(window, -cost);
  return operation === "charge" ? worthUnits(window, cost) : takeWorthUnits(window, cost);
}
