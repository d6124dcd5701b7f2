import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";

/** One limit of one request: which windows, for whom, how much. */
export interface ResolvedLimit {
  readonly limit: CompiledLimit;
  /** The limit's own windows, or those of the subject's tier or override. */
  readonly windows: readonly CompiledWindow[];
  /** Values of the limit's dimensions, joined without ambiguity. */
  readonly subject: string;
  /** At least 1; for `charge` also below 0, a credit. */
  readonly cost: number;
  /**
   * 0 for limits that are enforced. Limits of a shadow policy share a group of their own above 0: each such group is
   * all or nothing by itself, and is taken only when group 0 is.
   */
  readonly group: number;
}

/** How a limit's windows stand to the cost, told by the one that limits most. */
export interface LimitOutcome {
  readonly fits: Fit;
  /** Which of the limit's windows speaks. */
  readonly window: CompiledWindow;
  /**
   * The largest cost that would pass by this limit now: the least over all its windows, 0 while the subject is blocked. After the
   * take where it was taken, as it stood where it was not. Whole units of cost.
   */
  readonly remaining: number;
  /** The same of the window that speaks alone. */
  readonly windowRemaining: number;
  /** Whole milliseconds, rounded up; 0 when it fits now, Infinity when it never will. */
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  /**
   * First whole millisecond at which `remaining` has grown if nothing else comes; Infinity where no more ever comes. Where the cost fits
   * later it is `retryAfterMs`.
   */
  readonly moreAfterMs: number;
  /** Leaky bucket: cost in the bucket with this request, and how long until it has leaked down to it. */
  readonly queuePosition: number;
  readonly queueDelayMs: number;
}

export type Fit = "now" | "later" | "blocked" | "never";

/** Proof of a take, for giving it back: opaque, printable, good once. */
export type Receipt = string;

export interface TakeAnswer {
  /** Whether group 0 fitted and was charged. */
  readonly taken: boolean;
  /** When it was decided, in epoch milliseconds by the store's own clock. */
  readonly atMs: number;
  /** One per resolved limit, in order. */
  readonly outcomes: readonly LimitOutcome[];
  /** Undefined when nothing was charged. */
  readonly receipt: Receipt | undefined;
  /** The id was taken before; these are its outcomes, and nothing was charged. */
  readonly replayed: boolean;
  /** One per resolved limit; undefined for limits without a record. Absent if no limit has one. */
  readonly records?: readonly (LimitRecord | undefined)[] | undefined;
}

/** What is recorded with a limit's counter, decided in the same moment as the take or the peek that brings it. */
export interface LimitRecord {
  /** Cost that this limit denied in a row, on all nodes, with this request; 0 after an allowance. */
  readonly denied: number;
  /** When it was last decided by, in epoch milliseconds by the store's clock. Undefined: never, or so long ago that it is idle since. */
  readonly updatedMs: number | undefined;
  /** How each window stands: after the take where it was taken. Empty unless `record` asked for it. */
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
  /** How long the caller waits at most; a store that waits shorter by itself does so. */
  readonly deadlineMs?: number | undefined;
  /** Whether somebody is told every outcome. Else those beside a denial may be left unlooked at, and say that they fit. */
  readonly details?: boolean | undefined;
  /** Whether every limit is recorded and reported. Otherwise only those whose policy has `count_denials`, without their windows. */
  readonly record?: boolean | undefined;
}

export type PeekOptions = Pick<TakeOptions, "deadlineMs" | "record">;

/** Whether a record is kept of a limit. */
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
 * Where counters live. Every store keeps these promises, and `counterStoreContract` (in `sluice/testing`) holds it to
 * them.
 *
 * - `take` is atomic: all limits of a group are charged, or none is. A denial changes nothing, but for `block_for` and records.
 * - `peek` is `take` without the charge, and changes nothing at all.
 * - `give` undoes a take, once. It is void when the receipt's moment has passed, or the counter was reset or lost
 *   since, so that a late give-back never admits more than the limit allows. What gave anything back forgets its request id.
 * - `charge` takes unconditionally, after the fact. What it takes beyond the capacity is debt, at most one capacity. A cost
 *   below 0 is a credit, given back without a receipt: debt shrinks first, and an empty counter is the end of it, so that no
 *   more than the capacity is ever there. A counter that does not exist stays so. Receipts that are out are worth as much
 *   less, or nothing where the counter was emptied.
 * - `block` denies these subjects from now on, for so long, by each of the limits that is `blockable`; others are left as
 *   they are. It never shortens a block that lasts, credits do not touch it, and `reset` lifts it.
 * - `reset` forgets the counters of these limits and subjects, their blocks and their records.
 * - A record (`LimitRecord`) is kept of limits whose policy counts denials, and of every limit of a take that asks for it: an
 *   allowance writes it, and a denial does for the limits that deny. It may be forgotten when the counter is idle.
 * - `forget` is `reset` as far as this process holds anything of them, without asking a server. Absent: it holds nothing.
 * - `read` tells how each window stands.
 *
 * A store answers at once where it can (`local`), else with a promise. One that cannot answer rejects with
 * `StoreUnavailable`, soon: a limiter has no timer of its own, and waits for as long as the store does. Any other error
 * is taken for `storage_unavailable`, but for a `SluiceError`, which is the caller's mistake.
 */
export interface CounterStore {
  readonly local: boolean;
  /** Whether this store decides by leases where it can. Absent: it does not. */
  readonly leases?: boolean | undefined;
  /** Whether this store reports its outages, by a warning or to a listener, so that callers need not. Absent: false. */
  readonly reportsOutages?: boolean | undefined;
  take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer | Promise<TakeAnswer>;
  peek(limits: readonly ResolvedLimit[], options?: PeekOptions): TakeAnswer | Promise<TakeAnswer>;
  give(receipt: Receipt): boolean | Promise<boolean>;
  charge(limits: readonly ResolvedLimit[]): void | Promise<void>;
  /** `forMs` is whole: 1 ms … 30 days. */
  block(limits: readonly ResolvedLimit[], forMs: number): void | Promise<void>;
  reset(limits: readonly ResolvedLimit[]): void | Promise<void>;
  forget?(limits: readonly ResolvedLimit[]): void;
  read(limit: ResolvedLimit): readonly WindowReading[] | Promise<readonly WindowReading[]>;
  close(): void | Promise<void>;
}

/** What a node asks of the centre, for a set of limits of one subject each. */
export interface LeaseAsk {
  /** How many units at most. 0: none, an earlier grant is only settled. */
  readonly want: number;
  /** For how long, from when the centre is asked, anything of it may be spent: whole, 1 ms … `maxHoldMs`. */
  readonly holdMs: number;
  /** What became of earlier grants of the same limits. Of each unit it is told at most once, also where a reply was lost. */
  readonly settled?: SettledGrant | undefined;
}

export interface SettledGrant {
  /** As the grant said. */
  readonly epoch: number;
  /** Spent: no longer unspent, and charged already. */
  readonly spent: number;
  /** Unspent and still held: goes over to this grant, and is held for as long as that. */
  readonly kept: number;
  /** Unspent and given back to the counters: as much of it as the ledger still knows. */
  readonly returned: number;
}

export interface LeaseAnswer {
  /** Charged to every window of every limit. 0: refused, or not wanted. */
  readonly granted: number;
  /** Names the time until which the centre remembers what was granted and kept. */
  readonly epoch: number;
  readonly atMs: number;
  /** How each limit stands after the grant; where nothing was granted, to a cost of 1. Empty where these limits live in several places. */
  readonly outcomes: readonly LimitOutcome[];
  /** How much of the first limit is unspent, as far as the centre knows, with this grant. */
  readonly unspent: number;
  /** Units that were said to be kept and that no ledger knows: they must not be spent. 0 unless a ledger was lost, or it was a lie. */
  readonly forgotten: number;
}

/**
 * A store that grants leases: so much is taken at once, to be spent elsewhere later. See docs/leases.md.
 *
 * - A grant is charged when it is made: as much as fits every window of every limit, up to what is wanted.
 * - Of each limit and subject it keeps a *ledger*: what was granted and is unspent, by the time at which that is forgotten, which is
 *   no sooner than `holdMs` and a margin after it was granted. A grant is at most half, rounded up, of what the ledger leaves of
 *   the allowance (`leaseAllowance`). So what is unspent never exceeds the allowance.
 * - What is settled leaves the ledger; what is returned also leaves the counters, as a credit does. Both what is returned and what is
 *   kept is only as much as the ledger has in that epoch: more was never granted. `reset` leaves the ledger alone.
 * - One call is atomic, and is never repeated by itself. Limits that are not leasable (`isLeasable`) are refused.
 */
export interface CentralCounters extends CounterStore {
  lease(limits: readonly ResolvedLimit[], ask: LeaseAsk): LeaseAnswer | Promise<LeaseAnswer>;
}
