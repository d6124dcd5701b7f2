import type {
  CheckRequest,
  CompiledLimit,
  CompiledWindow,
  LeaseAnswer,
  LeaseAsk,
  OneAsker,
  ResolvedLimit,
  TakeAnswer,
} from "sluice";
import type { TakePlan } from "sluice/store";

/** What is asked of counters that share a slot. Questions of one operation travel together. */
export interface Question {
  readonly operation: Exclude<Operation, "takeArrival">;
  readonly limits: readonly ResolvedLimit[];
  /** Take: remembered under this id, bound to the fingerprint. */
  readonly id: string | undefined;
  /** Tells the parts of one request apart that may end up on the same server; empty where there are none. */
  readonly idScope?: string | undefined;
  readonly fingerprint: string;
  readonly idTtlMs: number;
  /** Take: the name under which it can be given back, and for how long. Absent: for as long as anything could be. */
  readonly receipt: string | undefined;
  readonly receiptLifeMs?: number | undefined;
  /** Block: for how long. */
  readonly forMs?: number | undefined;
  /** Lease: what is wanted of the limits, and what became of earlier grants. */
  readonly ask?: LeaseAsk | undefined;
}

/**
 * A take from one window of arrival times with nothing asked beside: the commonest question, by a script of its own. A class and
 * no literal, because so many of them wait for the server: see decision 0012.
 */
export class ArrivalQuestion implements ResolvedLimit {
  readonly operation = "takeArrival";
  readonly limit: CompiledLimit;
  readonly windows: readonly CompiledWindow[];
  readonly subject: string;
  readonly cost: number;
  readonly group = 0;
  readonly request: CheckRequest;
  readonly asker: OneAsker<unknown>;

  constructor(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
    request: CheckRequest,
    asker: OneAsker<unknown>,
  ) {
    this.limit = limit;
    this.windows = windows;
    this.subject = subject;
    this.cost = cost;
    this.request = request;
    this.asker = asker;
  }
}

export const operations = ["takeArrival", "take", "peek", "charge", "block", "lease"] as const;

export type Operation = (typeof operations)[number];

export interface Answer extends TakeAnswer {
  /** How the windows stood before anything was taken, in case what was taken is given back. Takes by the general script. */
  readonly plan: TakePlan | undefined;
  /** Peeks: what the script said of each window, for readings. */
  readonly numbers: readonly number[];
  /** Leases. */
  readonly grant?: Pick<LeaseAnswer, "granted" | "epoch" | "unspent"> | undefined;
}

/** What a script says of one question. */
export type Reply =
  | { readonly kind: "answer"; readonly answer: Answer }
  /** The id belongs to another request. */
  | { readonly kind: "conflict" }
  /** Bounds of a calendar window do not hold at the server's time; nothing was charged. */
  | { readonly kind: "outside" };

/** How much of a call's time a question takes. 1 is a take from one window of arrival times, some two microseconds. */
export function weightOf({ operation, limits }: Pick<Question, "operation" | "limits">): number {
  let weight = 1;
  for (const { windows } of limits) {
    // A ledger is read and written beside.
    if (operation === "lease") weight += 3;
    for (const { kind } of windows) weight += kind === "log" ? 12 : 1;
  }
  return weight;
}
