import type { CheckRequest } from "sluice";
import { defaultIdTtlMs } from "sluice/internal";
import type {
  CompiledLimit,
  CompiledWindow,
  LeaseAnswer,
  LeaseAsk,
  ResolvedLimit,
  TakeAnswer,
  TakeOptions,
} from "sluice/store";
import { isRecorded, type TakeCallback, type TakePlan } from "sluice/store";
import type { GuardedShard } from "./guarded-shard.ts";

/** A question about counters that share a slot. Questions of one operation travel together. */
export interface Question {
  readonly operation: Operation;
  readonly limits: readonly ResolvedLimit[];
  /** Take: remembered under this id, bound to the fingerprint. */
  readonly id: string | undefined;
  /** Distinguishes the parts of one request that may end up on the same server; empty if there are none. */
  readonly idScope?: string | undefined;
  readonly fingerprint: string;
  readonly idTtlMs: number;
  /** Take: the name under which it can be given back, and for how long. Absent: as long as giving back is possible. */
  readonly receipt: string | undefined;
  readonly receiptLifeMs?: number | undefined;
  /** Take: the receipt is a hold, which expires after this time. */
  readonly reservedMs?: number | undefined;
  /** Take from arrival times: how long it may be given back, by means of its answer. 0: it will not be. */
  readonly holdMs?: number | undefined;
  /** Take and peek: whether every limit is recorded, and reported with its windows. */
  readonly record?: boolean | undefined;
  /** Block: for how long. */
  readonly forMs?: number | undefined;
  /** Lease: the units wanted of the limits, and what became of earlier grants. */
  readonly ask?: LeaseAsk | undefined;
}

/**
 * A cost to be taken from one window of arrival times. This and its questions are classes rather than literals: see
 * decision 0012.
 */
export class ArrivalStep {
  readonly window: CompiledWindow;
  readonly subject: string;
  readonly cost: number;

  constructor(window: CompiledWindow, subject: string, cost: number) {
    this.window = window;
    this.subject = subject;
    this.cost = cost;
  }
}

/** A question for the general script. */
class GeneralQuestion implements Question {
  readonly operation: Operation;
  readonly limits: readonly ResolvedLimit[];
  readonly id: string | undefined;
  readonly fingerprint: string;
  readonly idTtlMs: number;
  readonly receipt: string | undefined;
  readonly record: boolean;
  readonly reservedMs: number | undefined;

  constructor(
    operation: Operation,
    limits: readonly ResolvedLimit[],
    id: string | undefined,
    fingerprint: string,
    idTtlMs: number,
    receipt: string | undefined,
    record: boolean,
    reservedMs: number | undefined,
  ) {
    this.operation = operation;
    this.limits = limits;
    this.id = id;
    this.fingerprint = fingerprint;
    this.idTtlMs = idTtlMs;
    this.receipt = receipt;
    this.record = record;
    this.reservedMs = reservedMs;
  }
}

/** A question for the general script, with those options of a take that concern it. */
export function createQuestion(
  operation: Operation,
  limits: readonly ResolvedLimit[],
  options?: TakeOptions,
  receipt?: string,
): Question {
  return new GeneralQuestion(
    operation,
    limits,
    options?.id,
    options?.fingerprint ?? "",
    options?.idTtlMs ?? defaultIdTtlMs,
    receipt,
    options?.record === true,
    options?.holdMs,
  );
}

/**
 * Whether a question includes a record of a limit: it follows the limit's windows, in numbers like those of a window.
 */
export function hasRecord(
  { operation, record }: Pick<Question, "operation" | "record">,
  limit: ResolvedLimit,
): boolean {
  return (operation === "take" || operation === "peek") && isRecorded(limit, record);
}

/** A take from several windows of arrival times without further options. */
export class ArrivalsQuestion implements Question {
  readonly operation = "takeArrivals";
  readonly limits: readonly ResolvedLimit[];
  /** How many windows they have. */
  readonly count: number;
  readonly holdMs: number;
  readonly id = undefined;
  readonly fingerprint = "";
  readonly idTtlMs = 0;
  readonly receipt = undefined;

  constructor(limits: readonly ResolvedLimit[], holdMs = 0) {
    this.limits = limits;
    let count = 0;
    for (const { windows } of limits) count += windows.length;
    this.count = count;
    this.holdMs = holdMs;
  }
}

/** A take from fixed and sliding windows, also next to arrival times, without further options. */
export class CountsQuestion implements Question {
  /** `take` if it travels with questions for the general script, which may be about the same counters. */
  operation: "takeCounts" | "take" = "takeCounts";
  readonly limits: readonly ResolvedLimit[];
  readonly id = undefined;
  readonly fingerprint = "";
  readonly idTtlMs = 0;
  readonly receipt = undefined;

  constructor(limits: readonly ResolvedLimit[]) {
    this.limits = limits;
  }
}

/** The same for one window, whose asker turns the answer into something else: the commonest question. */
export class ArrivalQuestion implements ResolvedLimit, ArrivalStep {
  readonly operation = "takeArrivals";
  readonly limit: CompiledLimit;
  readonly windows: readonly CompiledWindow[];
  readonly window: CompiledWindow;
  readonly count = 1;
  readonly holdMs = 0;
  readonly subject: string;
  readonly cost: number;
  readonly group = 0;
  readonly request: CheckRequest;
  readonly asker: TakeCallback<unknown>;

  constructor(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
    request: CheckRequest,
    asker: TakeCallback<unknown>,
  ) {
    this.limit = limit;
    this.windows = windows;
    this.window = windows[0]!;
    this.subject = subject;
    this.cost = cost;
    this.request = request;
    this.asker = asker;
  }
}

/**
 * `takeArrivals` and `takeCounts` are takes without further options, each by a dedicated script: from windows of arrival times, and
 * from fixed and sliding windows.
 */
export const operations = ["takeArrivals", "takeCounts", "take", "peek", "charge", "block", "lease"] as const;

export type Operation = (typeof operations)[number];

export interface Answer extends TakeAnswer {
  /** How the windows stood before anything was taken, for parts of a request that may be given back. */
  readonly plan: TakePlan | undefined;
  /** Peeks, and takes with records: the script's numbers for each window, for readings. */
  readonly numbers: readonly number[];
  /** Leases. */
  readonly grant?: Pick<LeaseAnswer, "granted" | "epoch" | "unspent" | "forgotten"> | undefined;
  /** Takes that are held. */
  readonly held?: Held | undefined;
}

/** What is known of a take from windows of arrival times, so that it can be given back. */
export interface Held extends HeldNumbers {
  /**
   * The server that took it, and on which connection. A server that took over or was restarted may have lost the take
   * but kept the mark, and would give back what others were charged.
   */
  readonly shard: GuardedShard;
  readonly connections: number;
}

export interface HeldNumbers {
  /** When it was taken, by the server's clock. */
  readonly nowUs: number;
  /** How far ahead of now each window was found, in units of arrival time. */
  readonly aheads: readonly number[];
  /** For each window: the name of its mark, and how much had been given back to it by then. */
  readonly marks: readonly string[];
}

export const none: readonly number[] = [];

/** How many answers servers have given: answers are made in the order of a reply. */
let given = 0;

/** The place of the next answer among all. */
export function nextOrder(): number {
  given += 1;
  return given;
}

/** A class, for the same reason as questions. */
export class GivenAnswer implements Answer {
  readonly taken: boolean;
  readonly atMs: number;
  readonly order: number = nextOrder();
  readonly outcomes: Answer["outcomes"];
  readonly plan: TakePlan | undefined;
  readonly receipt: string | undefined;
  readonly replayed: boolean;
  readonly numbers: readonly number[];
  readonly held: Held | undefined;
  readonly records: Answer["records"];

  constructor(
    taken: boolean,
    atMs: number,
    outcomes: Answer["outcomes"],
    plan: TakePlan | undefined = undefined,
    receipt: string | undefined = undefined,
    replayed = false,
    numbers: readonly number[] = none,
    held: Held | undefined = undefined,
    records: Answer["records"] = undefined,
  ) {
    this.taken = taken;
    this.atMs = atMs;
    this.outcomes = outcomes;
    this.plan = plan;
    this.receipt = receipt;
    this.replayed = replayed;
    this.numbers = numbers;
    this.held = held;
    this.records = records;
  }
}

/** A script's answer to one question. */
export type Reply =
  | { readonly kind: "answer"; readonly answer: Answer }
  /** The id belongs to another request. */
  | { readonly kind: "conflict" }
  /** Bounds of a calendar window do not hold at the server's time; nothing was charged. */
  | { readonly kind: "outside" };

/** A question for the arrivals script. */
export type AnyArrivals = ArrivalQuestion | ArrivalsQuestion;

/** How much of a call's time a question takes. 1 is a take from one window of arrival times, some two microseconds. */
export function questionWeight(question: Pick<Question, "operation" | "limits" | "holdMs" | "record">): number {
  const { operation, limits, holdMs = 0 } = question;
  let weight = operation === "takeArrivals" || operation === "takeCounts" ? 0 : 1;
  for (const limit of limits) {
    const { windows } = limit;
    if (hasRecord(question, limit)) weight += 1;
    // It also reads and writes a ledger.
    if (operation === "lease") weight += 3;
    for (const { kind } of windows) weight += kind === "log" || kind === "distinct" ? 12 : 1;
    // It also reads and writes marks.
    if (holdMs > 0) weight += windows.length;
  }
  return weight;
}
