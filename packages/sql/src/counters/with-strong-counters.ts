import { SluiceError } from "sluice";
import type {
  CentralCounters,
  CounterStore,
  LimitOutcome,
  LimitRecord,
  PeekOptions,
  Receipt,
  ResolvedLimit,
  SingleTakes,
  TakeAnswer,
  TakeOptions,
  WindowReading,
} from "sluice/store";
import { StoreUnavailable } from "sluice/store";
import type { SqlCounters } from "./sql-counters.ts";

/**
 * Counters for all policies: those with `counters: strong` count in `strong`, the others in `ordinary`, which is asked
 * as if it were alone while no policy is strong.
 */
export function withStrongCounters(ordinary: CounterStore, strong: SqlCounters): CounterStore {
  return new MixedCounters(ordinary, strong);
}

/** The limits of a request that one of the two counts, and their places in the request. */
interface Part {
  readonly limits: readonly ResolvedLimit[];
  readonly indexes: readonly number[];
  /** Whether any of them is enforced. */
  readonly enforced: boolean;
}

/** What a part answered; undefined if it could not be asked, and decides nothing. */
type PartAnswer = Pick<TakeAnswer, "atMs" | "outcomes" | "records"> | undefined;

/** Separates the receipts of the two. */
const between = "&";

/**
 * A request whose limits count in both is all or nothing, as its caller sees it:
 *
 *     ordinary takes ─┬─► strong takes ─┬─► allowed
 *                     │                 ├─► denied, or certainly not done: ordinary gives back
 *                     └─► denied        └─► unknown: ordinary stays charged
 *
 * Strong counters are committed last, so a crash may leave the others charged, and never the strong ones alone.
 */
class MixedCounters implements CounterStore {
  readonly #ordinary: CounterStore;
  readonly #strong: SqlCounters;
  #needed = false;
  /** What ordinary counters offer on top. Limits of strong policies never come this way. */
  declare readonly takeOne?: SingleTakes["takeOne"];
  declare readonly takeSeveral?: unknown;
  declare readonly lease?: CentralCounters["lease"];

  constructor(ordinary: CounterStore, strong: SqlCounters) {
    this.#ordinary = ordinary;
    this.#strong = strong;
    for (const name of ["takeOne", "takeSeveral", "lease"] as const) {
      const method: unknown = (ordinary as Partial<Record<typeof name, unknown>>)[name];
      if (typeof method === "function") Object.assign(this, { [name]: method.bind(ordinary) });
    }
  }

  get local(): boolean {
    return this.#ordinary.local && !this.#needed;
  }

  get leases(): boolean | undefined {
    return this.#ordinary.leases;
  }

  get distinct(): boolean | undefined {
    return this.#ordinary.distinct;
  }

  get reportsOutages(): boolean | undefined {
    return this.#ordinary.reportsOutages;
  }

  get holds(): CounterStore["holds"] {
    return this.#ordinary.holds;
  }

  useStrong(needed: boolean): void {
    this.#needed = needed;
    // So that the first check need not wait for it. What fails is found again by the next call.
    if (needed) this.#strong.open().catch(() => undefined);
  }

  take(limits: readonly ResolvedLimit[], options?: TakeOptions): TakeAnswer | Promise<TakeAnswer> {
    return limits.some(isStrong) ? this.#takeMixed(limits, options) : this.#ordinary.take(limits, options);
  }

  peek(limits: readonly ResolvedLimit[], options?: PeekOptions): TakeAnswer | Promise<TakeAnswer> {
    return limits.some(isStrong) ? this.#peekMixed(limits, options) : this.#ordinary.peek(limits, options);
  }

  /** The strong part first: if the rest fails, no strong counter is left charged alone. */
  async give(receipt: Receipt): Promise<boolean> {
    if (!receipt.startsWith("q")) return this.#ordinary.give(receipt);
    const end = receipt.indexOf(between);
    if (end < 0) return this.#strong.give(receipt);
    const given = await this.#strong.give(receipt.slice(0, end));
    return (await this.#ordinary.give(receipt.slice(end + 1))) || given;
  }

  charge(limits: readonly ResolvedLimit[]): void | Promise<void> {
    return this.#inBoth(limits, (store, some) => store.charge(some));
  }

  block(limits: readonly ResolvedLimit[], forMs: number): void | Promise<void> {
    return this.#inBoth(limits, (store, some) => store.block(some, forMs));
  }

  reset(limits: readonly ResolvedLimit[]): void | Promise<void> {
    return this.#inBoth(limits, (store, some) => store.reset(some));
  }

  forget(limits: readonly ResolvedLimit[]): void {
    this.#ordinary.forget?.(limits.filter((one) => !isStrong(one)));
  }

  read(limit: ResolvedLimit): readonly WindowReading[] | Promise<readonly WindowReading[]> {
    return isStrong(limit) ? this.#strong.read(limit) : this.#ordinary.read(limit);
  }

  async close(): Promise<void> {
    await Promise.all([this.#ordinary.close(), this.#strong.close()]);
  }

  #inBoth(
    limits: readonly ResolvedLimit[],
    act: (store: CounterStore, limits: readonly ResolvedLimit[]) => void | Promise<void>,
  ): void | Promise<void> {
    const strong = limits.filter(isStrong);
    if (strong.length === 0) return act(this.#ordinary, limits);
    const ordinary = limits.filter((one) => !isStrong(one));
    if (ordinary.length === 0) return act(this.#strong, strong);
    return Promise.resolve(act(this.#ordinary, ordinary)).then(() => act(this.#strong, strong));
  }

  async #takeMixed(limits: readonly ResolvedLimit[], options: TakeOptions | undefined): Promise<TakeAnswer> {
    if (options?.holdMs !== undefined)
      throw new SluiceError("not_holdable", "policies with counters: strong keep no holds; use check and charge");
    const strong = partOf(limits, isStrong);
    if (strong.limits.length === limits.length) return this.#strong.take(limits, options);
    const ordinary = partOf(limits, (one) => !isStrong(one));
    const startedMs = performance.now();
    const first = await orNothing(ordinary, () =>
      this.#ordinary.take(ordinary.limits, { ...options, details: true, receipt: true }),
    );
    if (first !== undefined && !first.taken) {
      // A denial remains one if the rest cannot be asked.
      const rest = await this.#strong.peek(strong.limits, inTime(options, startedMs)).catch(() => undefined);
      return joinAnswers(limits, [ordinary, first], [strong, rest], { taken: false });
    }
    let second: TakeAnswer | undefined;
    try {
      second = await orNothing(strong, () => this.#strong.take(strong.limits, inTime(options, startedMs)));
    } catch (error) {
      if (isUndone(error)) await this.#giveBack(first);
      throw error;
    }
    if (second !== undefined && !second.taken) {
      await this.#giveBack(first);
      const rest = inTime(options, startedMs);
      const before = await Promise.resolve(this.#ordinary.peek(ordinary.limits, rest)).catch(() => first);
      return joinAnswers(limits, [ordinary, before], [strong, second], { taken: false });
    }
    const answers = [second, first].filter((one) => one !== undefined);
    const receipts = answers.map(({ receipt }) => receipt).filter((one) => one !== undefined);
    return joinAnswers(limits, [ordinary, first], [strong, second], {
      taken: true,
      receipt: options?.receipt === true && receipts.length > 0 ? receipts.join(between) : undefined,
      replayed: answers.length > 0 && answers.every(({ replayed }) => replayed),
    });
  }

  async #peekMixed(limits: readonly ResolvedLimit[], options: PeekOptions | undefined): Promise<TakeAnswer> {
    const strong = partOf(limits, isStrong);
    if (strong.limits.length === limits.length) return this.#strong.peek(limits, options);
    const ordinary = partOf(limits, (one) => !isStrong(one));
    const [first, second] = await Promise.all([
      orNothing(ordinary, () => this.#ordinary.peek(ordinary.limits, options)),
      orNothing(strong, () => this.#strong.peek(strong.limits, options)),
    ]);
    return joinAnswers(limits, [ordinary, first], [strong, second], { taken: false });
  }

  /** What cannot be given back stays charged; what an earlier attempt was allowed stays allowed. */
  async #giveBack(answer: TakeAnswer | undefined): Promise<void> {
    if (answer?.receipt === undefined || answer.replayed) return;
    await Promise.resolve(this.#ordinary.give(answer.receipt)).catch(() => false);
  }
}

function isStrong({ limit }: ResolvedLimit): boolean {
  return limit.policy.counters === "strong";
}

function partOf(limits: readonly ResolvedLimit[], belongs: (limit: ResolvedLimit) => boolean): Part {
  const indexes = [...limits.keys()].filter((index) => belongs(limits[index]!));
  const some = indexes.map((index) => limits[index]!);
  return { limits: some, indexes, enforced: some.some(({ group }) => group === 0) };
}

/** Policies in shadow mode that cannot be asked change nothing. */
async function orNothing<T>(part: Part, ask: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (part.enforced || error instanceof SluiceError) throw error;
    return undefined;
  }
}

/** The same options, with what is left of the caller's deadline. */
function inTime<T extends PeekOptions>(options: T | undefined, startedMs: number): T | undefined {
  if (options?.deadlineMs === undefined) return options;
  return { ...options, deadlineMs: Math.max(options.deadlineMs - (performance.now() - startedMs), 1) };
}

/** Whether a failure certainly charged nothing. */
function isUndone(error: unknown): boolean {
  return error instanceof SluiceError || (error instanceof StoreUnavailable && !error.mayBeDone);
}

function joinAnswers(
  limits: readonly ResolvedLimit[],
  ...[one, other, about]: [
    readonly [Part, PartAnswer],
    readonly [Part, PartAnswer],
    { readonly taken: boolean; readonly receipt?: Receipt | undefined; readonly replayed?: boolean },
  ]
): TakeAnswer {
  const outcomes: LimitOutcome[] = limits.map(unknownOutcome);
  const records: (LimitRecord | undefined)[] = limits.map(() => undefined);
  for (const [{ indexes }, answer] of [one, other]) {
    for (const [i, index] of indexes.entries()) {
      outcomes[index] = answer?.outcomes[i] ?? outcomes[index]!;
      records[index] = answer?.records?.[i];
    }
  }
  return {
    ...{ replayed: false, receipt: undefined, ...about },
    atMs: Math.max(one[1]?.atMs ?? 0, other[1]?.atMs ?? 0),
    outcomes,
    records: one[1]?.records === undefined && other[1]?.records === undefined ? undefined : records,
  };
}

/** Says that nothing is known against a cost. */
function unknownOutcome({ windows, cost }: ResolvedLimit): LimitOutcome {
  const window = windows[0]!;
  const remaining = Math.max(Math.floor(window.capacity) - cost, 0);
  return {
    ...{ fits: "now", window, remaining, windowRemaining: remaining, retryAfterMs: 0, resetAfterMs: 0 },
    ...{ moreAfterMs: Number.POSITIVE_INFINITY, queuePosition: 0, queueDelayMs: 0 },
  };
}
