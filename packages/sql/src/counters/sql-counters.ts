import type {
  CircuitBreakerOptions,
  CircuitState,
  CounterStore,
  PeekOptions,
  Receipt,
  ResolvedLimit,
  TakeAnswer,
  TakeOptions,
  WindowReading,
} from "sluice/store";
import { CircuitBreaker, StoreUnavailable } from "sluice/store";
import { migrations } from "../migrations/index.ts";
import { openDatabase } from "../open-database.ts";
import type { PolicyStoreOptions } from "../policy-store.ts";
import { blockRows, chargeRows, resetRows } from "./change-rows.ts";
import type { CallFailed, CounterDatabase } from "./counter-database.ts";
import { CounterLane, type LaneCounts, type RowAction } from "./counter-lane.ts";
import { idRow, rowId } from "./counter-row.ts";
import { SqliteCounters } from "./sqlite-counters.ts";
import { giveToRows, peekAtRows, readFromRows, receiptRow, receiptRows, takeFromRows } from "./take-from-rows.ts";

/** How long a check waits for these counters if its policies do not say. */
export const defaultStrongDeadlineMs = 250;
const defaultConnections = 4;
const sweepEveryMs = 1_000;
const sweptAtOnce = 500;
/** How many such parts in a turn, as long as every fourth row of a part was idle: request ids end as fast as they come. */
const mostParts = 20;
/** After the last row: so many turns until the first is looked at again. */
const restTurns = 60;
const probeWithinMs = 1_000;

export interface SqlCountersOptions extends Pick<PolicyStoreOptions, "url" | "readPassword" | "applicationName"> {
  /** How long a call may take if the policies of a check do not say. Absent: 250. */
  readonly deadlineMs?: number | undefined;
  /** How many transactions may be under way at once. Absent: 4. With SQLite it is one. */
  readonly connections?: number | undefined;
  readonly breaker?: CircuitBreakerOptions | undefined;
  /** For tests: the time instead of the database's. Idle rows then stay. */
  readonly tune?: { readonly nowMs: () => number } | undefined;
}

export interface SqlCountersStats extends LaneCounts {
  readonly state: CircuitState;
  /** Actions that wait for a transaction. */
  readonly waiting: number;
  /** Idle rows that were deleted. */
  readonly swept: number;
}

/**
 * Counters in PostgreSQL, or in an SQLite file for one machine: durable, and exact for all who share the database. A
 * take is a transaction on locked rows, decided here, by the same formulas as in memory. Nothing is opened until the
 * first call.
 */
export class SqlCounters implements CounterStore {
  readonly local = false;
  readonly #options: SqlCountersOptions;
  readonly #deadlineMs: number;
  readonly #lanes: readonly CounterLane[];
  readonly #reading: CounterLane;
  readonly #breaker: CircuitBreaker;
  readonly #counts: LaneCounts = {
    ...{ actions: 0, transactions: 0, conflicts: 0, recovered: 0, unknown: 0, failures: 0, totalMs: 0 },
  };
  #database: Promise<CounterDatabase> | undefined;
  #where: string | undefined;
  #lastFailure: string | undefined;
  #sweeper: NodeJS.Timeout | undefined;
  #prober: NodeJS.Timeout | undefined;
  #sweptTo = "";
  #rest = 0;
  #sweeping = false;
  #swept = 0;
  #closed = false;

  constructor(options: SqlCountersOptions) {
    this.#options = options;
    this.#deadlineMs = options.deadlineMs ?? defaultStrongDeadlineMs;
    this.#breaker = new CircuitBreaker({
      ...options.breaker,
      onChange: (state, why) => {
        if (state === "open") this.#probeLater();
        options.breaker?.onChange?.(state, why);
      },
    });
    const lane = {
      database: () => this.open(),
      counts: this.#counts,
      beginCall: () => {
        const { generation, state } = this.#breaker;
        // Only its probe decides when an open breaker closes; this is a call that waited, or is made again.
        if (state !== "closed") return () => undefined;
        return (failed?: CallFailed) => {
          if (failed === undefined) return this.#breaker.succeed(performance.now(), generation);
          this.#lastFailure = renderFailure(failed);
          this.#breaker.fail(performance.now(), generation);
        };
      },
      nowMs: options.tune?.nowMs,
    };
    const isPostgres = /^postgres(ql)?:/.test(options.url);
    const connections = isPostgres ? (options.connections ?? defaultConnections) : 1;
    this.#lanes = Array.from({ length: connections }, () => new CounterLane(lane));
    this.#reading = new CounterLane({ ...lane, looks: true });
  }

  /** Where the database is, without user and password; undefined until it was opened. */
  get where(): string | undefined {
    return this.#where;
  }

  /** Why a call to the database failed most recently, without user and password. */
  get lastFailure(): string | undefined {
    return this.#lastFailure;
  }

  get stats(): SqlCountersStats {
    let { waiting } = this.#reading;
    for (const lane of this.#lanes) waiting += lane.waiting;
    return { ...this.#counts, state: this.#breaker.state, waiting, swept: this.#swept };
  }

  /** Opens the database, and brings its schema up to date. A failure is found again by the next call. */
  open(): Promise<CounterDatabase> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("storage_unavailable"));
    this.#database ??= this.#openDatabase().catch((error: unknown) => {
      this.#database = undefined;
      throw error;
    });
    return this.#database;
  }

  take(limits: readonly ResolvedLimit[], options?: TakeOptions): Promise<TakeAnswer> {
    const marks = options?.id === undefined ? [] : [idRow(options.id)];
    return this.#change(limits, (rows) => takeFromRows(rows, limits, options), marks, options);
  }

  peek(limits: readonly ResolvedLimit[], options?: PeekOptions): Promise<TakeAnswer> {
    return this.#look(limits, (rows) => peekAtRows(rows, limits, options?.record), options);
  }

  async give(receipt: Receipt): Promise<boolean> {
    const mark = receiptRow(receipt);
    if (mark === undefined) return false;
    const found = await this.#ask(this.#reading, { rows: [], marks: [mark], run: (rows) => rows.mark(mark) });
    if (found === undefined) return false;
    const { rows, id } = receiptRows(found);
    const marks = id === undefined ? [mark] : [mark, id];
    return this.#ask(this.#findLane(rows), { rows, marks, run: (inTurn) => giveToRows(inTurn, mark) });
  }

  charge(limits: readonly ResolvedLimit[]): Promise<void> {
    return this.#change(limits, (rows) => chargeRows(rows, limits));
  }

  block(limits: readonly ResolvedLimit[], forMs: number): Promise<void> {
    return this.#change(limits, (rows) => blockRows(rows, limits, forMs));
  }

  reset(limits: readonly ResolvedLimit[]): Promise<void> {
    return this.#change(limits, (rows) => resetRows(rows, limits));
  }

  read(limit: ResolvedLimit): Promise<readonly WindowReading[]> {
    return this.#look([limit], (rows) => readFromRows(rows, limit));
  }

  useStrong(needed: boolean): void {
    if (needed) this.open().catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#prober);
    const database = await this.#database?.catch(() => undefined);
    // Only now: opening it has started this.
    clearInterval(this.#sweeper);
    await database?.close();
  }

  #change<T>(
    limits: readonly ResolvedLimit[],
    run: RowAction<T>["run"],
    marks: readonly string[] = [],
    options?: Pick<TakeOptions, "deadlineMs">,
  ): Promise<T> {
    const rows = limits.map(rowId);
    return this.#ask(this.#findLane(rows), { rows, marks, run }, this.#findDeadline(limits, options));
  }

  #look<T>(
    limits: readonly ResolvedLimit[],
    run: RowAction<T>["run"],
    options?: Pick<TakeOptions, "deadlineMs">,
  ): Promise<T> {
    return this.#ask(this.#reading, { rows: limits.map(rowId), run }, this.#findDeadline(limits, options));
  }

  /** The shortest of the policies', else the store's; or the caller's, if that is shorter. */
  #findDeadline(limits: readonly ResolvedLimit[], options: Pick<TakeOptions, "deadlineMs"> | undefined): number {
    let shortest = Number.POSITIVE_INFINITY;
    for (const { limit } of limits) shortest = Math.min(shortest, limit.policy.deadlineMs ?? shortest);
    const mostMs = shortest === Number.POSITIVE_INFINITY ? this.#deadlineMs : shortest;
    return Math.min(mostMs, options?.deadlineMs ?? mostMs);
  }

  #ask<T>(lane: CounterLane, action: RowAction<T>, withinMs: number = this.#deadlineMs): Promise<T> {
    if (this.#closed || this.#breaker.state !== "closed")
      return Promise.reject(new StoreUnavailable("storage_unavailable", undefined, { mayBeDone: false }));
    return lane.ask(action, withinMs);
  }

  /** A subject's checks always meet in one lane, where they share transactions. */
  #findLane(rows: readonly string[]): CounterLane {
    let least = rows[0] ?? "c0";
    for (const row of rows) if (row < least) least = row;
    return this.#lanes[Number.parseInt(least.slice(1, 9), 16) % this.#lanes.length]!;
  }

  async #openDatabase(): Promise<CounterDatabase> {
    const { url, readPassword, applicationName } = this.#options;
    const address = { url, readPassword, applicationName };
    // The libraries below take a quarter of a second to load, and most programs never open these counters.
    const { migrate } = await import("../migrate.ts");
    const database = await openDatabase({ ...address, notify: false });
    try {
      await migrate(database, migrations);
    } catch (error) {
      await database.close();
      throw error;
    }
    let opened: CounterDatabase;
    if (database.kind === "sqlite") opened = new SqliteCounters(database);
    else {
      await database.close();
      const { PostgresCounters } = await import("./postgres-counters.ts");
      // One connection for each lane, one for reading, one for deleting idle rows.
      opened = new PostgresCounters(address, this.#lanes.length + 2);
    }
    this.#where = opened.where;
    if (this.#options.tune === undefined) this.#sweeper ??= setInterval(() => void this.#sweep(opened), sweepEveryMs);
    this.#sweeper?.unref();
    return opened;
  }

  async #sweep(database: CounterDatabase): Promise<void> {
    if (this.#sweeping || this.#breaker.state !== "closed") return;
    if (this.#rest > 0) {
      this.#rest -= 1;
      return;
    }
    this.#sweeping = true;
    try {
      for (let part = 0; part < mostParts; part += 1) {
        const { last, deleted } = await database.sweep(this.#sweptTo, sweptAtOnce);
        this.#swept += deleted;
        this.#sweptTo = last ?? "";
        if (last === undefined) this.#rest = restTurns;
        if (last === undefined || deleted < sweptAtOnce / 4) break;
      }
    } catch {
      // The next turn tries again.
    } finally {
      this.#sweeping = false;
    }
  }

  /** The breaker is probed apart from requests, so that none has to wait for a database that is not there. */
  #probeLater(): void {
    clearTimeout(this.#prober);
    if (this.#closed) return;
    this.#prober = setTimeout(() => void this.#probe(), (this.#options.breaker?.probeEveryMs ?? 5_000) + 5);
    this.#prober.unref();
  }

  async #probe(): Promise<void> {
    if (this.#breaker.admit(performance.now()) !== "probe") {
      if (this.#breaker.state !== "closed") this.#probeLater();
      return;
    }
    const { generation } = this.#breaker;
    try {
      const database = await this.open();
      await database.look([], probeWithinMs);
      this.#breaker.succeed(performance.now(), generation);
    } catch {
      this.#breaker.fail(performance.now(), generation);
    }
  }
}

function renderFailure({ message, cause }: CallFailed): string {
  const { message: why = "", code = "" } = (cause ?? {}) as { readonly message?: string; readonly code?: string };
  // Where a name has several addresses, Node's error has only a code.
  const reason = why === "" ? code : why;
  return message.includes(reason) ? message : `${message}: ${reason}`;
}
