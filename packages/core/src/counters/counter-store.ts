import type { CompiledLimit, CompiledWindow } from "../match/compiled.ts";

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
  /** Left in that window: after the take where it was taken, as it stood where it was not. Whole units of cost. */
  readonly remaining: number;
  /** Whole milliseconds, rounded up; 0 when it fits now, Infinity when it never will. */
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
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
}

export type PeekOptions = Pick<TakeOptions, "deadlineMs">;

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
 * - `take` is atomic: all limits of a group are charged, or none is. A denial changes nothing, but for `block_for`.
 * - `peek` is `take` without the charge, and changes nothing at all.
 * - `give` undoes a take, once. It is void when the receipt's moment has passed, or the counter was reset or lost
 *   since, so that a late give-back never admits more than the limit allows. What gave anything back forgets its request id.
 * - `charge` takes unconditionally, after the fact. What it takes beyond the capacity is debt, at most one capacity. A cost
 *   below 0 is a credit, given back without a receipt: debt shrinks first, and an empty counter is the end of it, so that no
 *   more than the capacity is ever there. A counter that does not exist stays so. Receipts that are out are worth as much
 *   less, or nothing where the counter was emptied.
 * - `block` denies these subjects from now on, for so long, by each of the limits that is `blockable`; others are left as
 *   they are. It never shortens a block that lasts, credits do not touch it, and `reset` lifts it.
 * - `reset` forgets the counters of these limits and subjects, and their blocks.
 * - `read` tells how each window stands.
 *
 * A store answers at once where it can (`local`), else with a promise. One that cannot answer rejects with
 * `StoreUnavailable`, soon: a limiter has no timer of its own, and waits for as long as the store does. Any other error
 * is taken for `storage_unavailable`, but for a `SluiceError`, which is the caller's mistake.
 */
export interface CounterStore {
  readonly local: boolean;
  take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer | Promise<TakeAnswer>;
  peek(limits: readonly ResolvedLimit[], options?: PeekOptions): TakeAnswer | Promise<TakeAnswer>;
  give(receipt: Receipt): boolean | Promise<boolean>;
  charge(limits: readonly ResolvedLimit[]): void | Promise<void>;
  /** `forMs` is whole: 1 ms … 30 days. */
  block(limits: readonly ResolvedLimit[], forMs: number): void | Promise<void>;
  reset(limits: readonly ResolvedLimit[]): void | Promise<void>;
  read(limit: ResolvedLimit): readonly WindowReading[] | Promise<readonly WindowReading[]>;
  close(): void | Promise<void>;
}
