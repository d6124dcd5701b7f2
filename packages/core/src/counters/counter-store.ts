import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";

/** One limit of one request: its windows, subject and cost. */
export interface ResolvedLimit {
  readonly limit: CompiledLimit;
  /** The limit's own windows, or those of the subject's tier or override. */
  readonly windows: readonly CompiledWindow[];
  /** Values of the limit's dimensions, joined without ambiguity. */
  readonly subject: string;
  /** At least 1; for `charge` also below 0, a credit. */
  readonly cost: number;
  /** Of a limit on distinct values: the value that this request has; "" if it lacks the dimension. */
  readonly value?: string | undefined;
  /**
   * 0 for enforced limits. The limits of each shadow policy form a separate group above 0, which is all or nothing on
   * its own and is taken only if group 0 is.
   */
  readonly group: number;
}

/** One limit for one subject: what has a counter. */
export type LimitOfSubject = Pick<ResolvedLimit, "limit" | "windows" | "subject">;

/** How a limit's windows stand against the cost, as reported by the most restrictive one. */
export interface LimitOutcome {
  readonly fits: Fit;
  /** The window that reports. */
  readonly window: CompiledWindow;
  /**
   * The largest cost that this limit would let through now: the least over all its windows, 0 while the subject is
   * blocked. After the take if it was taken, before it if not. Whole units of cost.
   */
  readonly remaining: number;
  /** `remaining` of the reporting window alone. */
  readonly windowRemaining: number;
  /** Whole milliseconds, rounded up; 0 if it fits now, Infinity if it never will. */
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  /**
   * The first whole millisecond at which `remaining` has grown if no other request comes; Infinity if it never grows.
   * If the cost fits later, this is `retryAfterMs`.
   */
  readonly moreAfterMs: number;
  /** Leaky bucket: the cost in the bucket including this request, and how long until that has leaked. */
  readonly queuePosition: number;
  readonly queueDelayMs: number;
}

export type Fit = "now" | "later" | "blocked" | "never";

/** Proof of a take, for giving it back: opaque, printable, valid once. */
export type Receipt = string;

export interface TakeAnswer {
  /** Whether group 0 fitted and was charged. */
  readonly taken: boolean;
  /** When it was decided, in epoch milliseconds by the store's own clock. */
  readonly atMs: number;
  /** Its place among the answers of the same instant. Absent: they came in that order. */
  readonly order?: number | undefined;
  /** One per resolved limit, in order. */
  readonly outcomes: readonly LimitOutcome[];
  /** Undefined when nothing was charged. */
  readonly receipt: Receipt | undefined;
  /** The id was taken before: these are its outcomes, and nothing was charged. */
  readonly replayed: boolean;
  /** One per resolved limit; undefined for limits without a record. Absent if no limit has one. */
  readonly records?: readonly (LimitRecord | undefined)[] | undefined;
}

/** What is recorded with a limit's counter, read at the same moment as the take or peek that returns it. */
export interface LimitRecord {
  /** Cost that this limit denied in a row, on all nodes, including this request; 0 after an allowance. */
  readonly denied: number;
  /**
   * When the limit last decided, in epoch milliseconds by the store's clock. Undefined: never, or not since it became
   * idle.
   */
  readonly updatedMs: number | undefined;
  /** How each window stands, after the take if it was taken. Empty unless `record` asked for it. */
  readonly windows: readonly WindowReading[];
}

export interface TakeOptions {
  /** Remembered with its answer when taken; a second take of the same id is answered from that. */
  readonly id?: string | undefined;
  /** What the id is bound to. Reuse with another fingerprint is an `idempotency_conflict`. */
  readonly fingerprint?: string | undefined;
  /** How long the id is remembered. Absent: 10 minutes. */
  readonly idTtlMs?: number | undefined;
  /** Whether a receipt is wanted. */
  readonly receipt?: boolean | undefined;
  /**
   * With `receipt`, of a store that keeps `holds`: the take is a hold, for this long, and the receipt is its id. All
   * limits have one cost, the amount.
   */
  readonly holdMs?: number | undefined;
  /** How long the caller waits at most. A store with a shorter limit keeps to that. */
  readonly deadlineMs?: number | undefined;
  /**
   * Whether every outcome will be read. If not, the outcomes next to a denial may be left undecided, and say that they
   * fit.
   */
  readonly details?: boolean | undefined;
  /**
   * Whether to record and report every limit. Otherwise only those whose policy has `count_denials`, without their
   * windows.
   */
  readonly record?: boolean | undefined;
}

export type PeekOptions = Pick<TakeOptions, "deadlineMs" | "record">;

/** Whether a limit is recorded. */
export function isRecorded({ limit }: Pick<ResolvedLimit, "limit">, record: boolean | undefined): boolean {
  return record === true || limit.policy.countDenials;
}

/** How one window of a counter stands, for people. */
export interface WindowReading {
  readonly window: CompiledWindow;
  readonly remaining: number;
  readonly resetAfterMs: number;
  /** The counter's own quantities, by name, for `explain`. */
  readonly state: Readonly<Record<string, number>>;
}

/**
 * Where counters live. Every store keeps these promises, and `counterStoreContract` (in `sluice/testing`) checks them.
 *
 * - `take` is atomic: all limits of a group are charged, or none is. A denial changes nothing, except for `block_for`
 *   and records.
 * - `peek` is `take` without the charge, and changes nothing at all.
 * - `give` undoes a take, once. It is void if the receipt's moment has passed, or the counter was reset or lost since,
 *   so a late give-back never admits more than the limit allows. Giving anything back forgets the take's request id.
 * - `charge` takes unconditionally, after the fact. Beyond the capacity it becomes debt, at most one capacity. A cost
 *   below 0 is a credit, given back without a receipt: it reduces debt first, and never more than empties the counter.
 *   A counter that does not exist stays so. Outstanding receipts lose as much value, or all of it if the counter was
 *   emptied.
 * - `block` denies these subjects for the given time, by each limit that is `blockable`; other limits stay as they are.
 *   It never shortens a block, credits do not touch it, and `reset` lifts it.
 * - `reset` forgets the counters of these limits and subjects, their blocks and their records.
 * - A record (`LimitRecord`) is kept for limits whose policy counts denials, and for every limit of a take that asks
 *   for it. An allowance writes it, and so does a denial for the limits that deny. It may be forgotten when the counter
 *   is idle.
 * - `forget` is `reset` limited to what this process holds, without asking a server. Absent: it holds nothing.
 * - `read` returns how each window stands.
 * - `distinct`: windows of the kind `distinct` count different values (`ResolvedLimit.value`) instead of cost. A value
 *   seen in the window passes free; a new one passes while the count is below the limit, and is noted once the whole
 *   request is taken. What is noted stays for the window: `give` and credits leave it, and there is no receipt for it.
 *   Absent: this store cannot count them, and policies with such limits are refused.
 *
 * - `holds` settles takes that were made as holds. Absent: this store keeps none.
 * - `useStrong` is called by a limiter before it uses policies, with whether any has `counters: strong`. Absent: these
 *   counters are not durable, and the limiter refuses such policies.
 *
 * A store answers at once if it can (`local`), otherwise with a promise. One that cannot answer rejects soon with
 * `StoreUnavailable`: a limiter has no timer and waits for as long as the store does. Any other error counts as
 * `storage_unavailable`, except a `SluiceError`, which is the caller's mistake.
 */
export interface CounterStore {
  readonly local: boolean;
  /** Whether this store decides by leases if it can. Absent: it does not. */
  readonly leases?: boolean | undefined;
  /** Whether this store reports its outages, by a warning or to a listener, so that callers need not. Absent: false. */
  readonly reportsOutages?: boolean | undefined;
  readonly distinct?: boolean | undefined;
  take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer | Promise<TakeAnswer>;
  peek(limits: readonly ResolvedLimit[], options?: PeekOptions): TakeAnswer | Promise<TakeAnswer>;
  give(receipt: Receipt): boolean | Promise<boolean>;
  charge(limits: readonly ResolvedLimit[]): void | Promise<void>;
  /** `forMs` is whole: 1 ms … 30 days. */
  block(limits: readonly ResolvedLimit[], forMs: number): void | Promise<void>;
  reset(limits: readonly ResolvedLimit[]): void | Promise<void>;
  readonly holds?: HoldStore | undefined;
  forget?(limits: readonly ResolvedLimit[]): void;
  readonly useStrong?: ((needed: boolean) => void) | undefined;
  read(limit: ResolvedLimit): readonly WindowReading[] | Promise<readonly WindowReading[]>;
  close(): void | Promise<void>;
}

/** Names a hold: a take whose cost is not known yet. It says where it is kept, so it is all that settling needs. */
export type HoldId = string;

/**
 * Settles holds. A hold is a take with a record: its amount is charged when it is made, so everything that looks at the
 * counters sees it. See docs/holds.md.
 *
 * - `commit` reports what the work has cost *so far*, in all: repeating a report changes nothing, and a lower one after
 *   a higher one neither. Up to the amount it is paid by the hold. Beyond, it is charged at once, as `charge` does.
 * - With `last` the hold is settled: what is left of the amount is given back at once, by the rule of receipts, so that
 *   no more is ever admitted than the limit allows. From then on the hold is remembered for ten minutes
 *   (`rememberHoldMs`), and every further question gets that answer.
 * - A hold that is not settled in time expires: what was not reported is given back. A report after that charges what it
 *   exceeds the part that could not be given back, so it is neither lost nor charged twice.
 * - `extend` makes a hold last at least so long from now. One that has ended stays so.
 * - Counters that were reset or lost since no longer hold the amount: a report charges only what exceeds it.
 * - No live hold is forgotten for another: when there is no room, a take that is to be one fails, and charges nothing.
 */
export interface HoldStore {
  commit(id: HoldId, actual: number, last: boolean): HoldAnswer | Promise<HoldAnswer>;
  extend(id: HoldId, holdMs: number): HoldAnswer | Promise<HoldAnswer>;
}

/** How a hold stands. */
export interface HoldAnswer {
  /**
   * `held`: live. `expired`: its time ran out, and it may still be settled. `settled`: for good. `unknown`: no such
   * hold, or it ended too long ago; nothing was charged or given back.
   */
  readonly state: "held" | "expired" | "settled" | "unknown";
  /** What was reserved. */
  readonly amount: number;
  /** The cost that was reported. */
  readonly actual: number;
  /** How much of it exceeds the amount. It was charged as debt, if it had to be. */
  readonly overdraft: number;
  /** Whether the hold expired before it was settled. */
  readonly expired: boolean;
  /** When it expires, or did, in epoch milliseconds by the store's clock. */
  readonly expiresAtMs: number;
  /** It was settled before: this is the answer that was given then. */
  readonly replayed: boolean;
}

/** What a node asks of the central store, for a set of limits with one subject each. */
export interface LeaseAsk {
  /** How many units at most. 0 only settles an earlier grant. */
  readonly want: number;
  /** How long the grant may be spent, counted from when the central store is asked: whole, 1 ms … `maxHoldMs`. */
  readonly holdMs: number;
  /** What became of earlier grants of the same limits. Each unit is reported at most once, even if a reply was lost. */
  readonly settled?: SettledGrant | undefined;
}

export interface SettledGrant {
  /** As the grant said. */
  readonly epoch: number;
  /** Spent: no longer unspent, and charged already. */
  readonly spent: number;
  /** Unspent and still held: moves to this grant, and is held for as long as that. */
  readonly kept: number;
  /** Unspent and given back to the counters, as far as the ledger still knows it. */
  readonly returned: number;
}

export interface LeaseAnswer {
  /** Charged to every window of every limit. 0: refused, or not wanted. */
  readonly granted: number;
  /** Names the time until which the central store remembers what was granted and kept. */
  readonly epoch: number;
  readonly atMs: number;
  /**
   * How each limit stands after the grant, or against a cost of 1 if nothing was granted. Empty if these limits live in
   * several places.
   */
  readonly outcomes: readonly LimitOutcome[];
  /** How much of the first limit is unspent, as far as the central store knows, including this grant. */
  readonly unspent: number;
  /**
   * Units reported as kept that no ledger knows: they must not be spent. 0 unless a ledger was lost, or the report was
   * false.
   */
  readonly forgotten: number;
}

/**
 * A store that grants leases: units taken at once, to be spent later on another node. See docs/leases.md.
 *
 * - A grant is charged when it is made: as much as fits every window of every limit, up to what is wanted.
 * - For each limit and subject it keeps a *ledger*: the units granted and unspent, by the time they are forgotten,
 *   which is no sooner than `holdMs` and a margin after the grant. A grant is at most half, rounded up, of what the
 *   ledger leaves of the allowance (`leaseAllowance`). So the unspent units never exceed the allowance.
 * - Settled units leave the ledger; returned ones also leave the counters, as a credit does. No more can be returned or
 *   kept than the ledger has in that epoch: more was never granted. `reset` leaves the ledger alone.
 * - A call is atomic, and is never repeated automatically. Limits that are not leasable (`isLeasable`) are refused.
 */
export interface CentralCounters extends CounterStore {
  lease(limits: readonly ResolvedLimit[], ask: LeaseAsk): LeaseAnswer | Promise<LeaseAnswer>;
}
