import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { Compilable, Kysely } from "kysely";
import { type Database, type OpenTransaction, TransactionConflict, type TransactionMode } from "./database.ts";
import { PolicyStoreUnavailable } from "./errors.ts";
import { isStorable } from "./storable.ts";
import type { Tables } from "./tables.ts";

/** How long a transaction that conflicts with others is retried. */
const retryForMs = 10_000;
/** How long a transaction may take: one that never ends would block all others. */
const maxTransactionMs = 30_000;
const maxLongTransactionMs = 600_000;
const maxPauseMs = 50;

/** Asks within one transaction, and only until it ends. */
export interface Session {
  readonly database: Database;
  readonly tables: Kysely<Tables>;
  all<Row>(query: Compilable<Row>): Promise<readonly Row[]>;
  /** How many rows were written. */
  run(query: Compilable): Promise<number>;
}

/** The transaction that the running code is inside, and the one around that. */
const around = new AsyncLocalStorage<Place>();

interface Place {
  readonly database: Database;
  readonly outer: Place | undefined;
  ended: boolean;
}

function isInside(database: Database, place: Place | undefined): boolean {
  if (place === undefined) return false;
  return (place.database === database && !place.ended) || isInside(database, place.outer);
}

/**
 * Runs `work` in one transaction, whole or not at all, and retries it after a conflict with another. A transaction inside of
 * another would wait for itself, and is refused.
 */
export async function transact<T>(
  database: Database,
  mode: TransactionMode,
  work: (session: Session) => Promise<T>,
  { dryRun = false }: { readonly dryRun?: boolean | undefined } = {},
): Promise<T> {
  if (isInside(database, around.getStore()))
    throw new Error("a transaction of the policy store was begun inside of another: use the view that `work` is given");
  const deadlineMs = performance.now() + retryForMs;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await transactOnce(database, mode, work, dryRun);
    } catch (error) {
      if (!(error instanceof TransactionConflict)) throw error;
      if (performance.now() > deadlineMs)
        throw new PolicyStoreUnavailable(`the policy store ${database.where} is busy: ${error.message}`);
      await sleep(1 + Math.random() * Math.min(maxPauseMs, 2 ** attempt));
    }
  }
}

async function transactOnce<T>(
  database: Database,
  mode: TransactionMode,
  work: (session: Session) => Promise<T>,
  dryRun: boolean,
): Promise<T> {
  const transaction = await database.begin(mode);
  const session = new TransactionSession(database, transaction);
  try {
    const result = await session.runWork(
      work,
      mode === "migrate" || mode === "alone" || mode === "upkeep" ? maxLongTransactionMs : maxTransactionMs,
    );
    session.end();
    if (dryRun) await transaction.rollback();
    else await transaction.commit();
    return result;
  } catch (error) {
    session.end();
    await transaction.rollback();
    // The database's error for the first statement that failed, even if `work` caught or replaced it.
    throw session.failure ?? error;
  }
}

class TransactionSession implements Session {
  readonly database: Database;
  readonly tables: Kysely<Tables>;
  failure: unknown;
  readonly #transaction: OpenTransaction;
  readonly #place: Place;

  constructor(database: Database, transaction: OpenTransaction) {
    this.database = database;
    this.tables = database.tables;
    this.#transaction = transaction;
    this.#place = { database, outer: around.getStore(), ended: false };
  }

  /** Also rejects if a statement failed and `work` went on: PostgreSQL would undo everything, and SQLite nothing. */
  async runWork<T>(work: (session: Session) => Promise<T>, withinMs: number): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise<never>((_resolve, reject) => {
      const why = `a transaction of the policy store ${this.database.where} took longer than ${withinMs} ms`;
      timer = setTimeout(() => reject(new PolicyStoreUnavailable(why)), withinMs);
    });
    try {
      const result = await Promise.race([around.run(this.#place, () => work(this)), tooLong]);
      if (this.failure !== undefined) throw this.failure;
      return result;
    } finally {
      clearTimeout(timer);
    }
  }

  end(): void {
    this.#place.ended = true;
  }

  readonly all = async <Row>(query: Compilable<Row>): Promise<readonly Row[]> => {
    const { sql, parameters } = query.compile();
    // It equals nothing that is stored.
    if (parameters.some(isUnstorable)) return [];
    const { rows } = await this.#ask(sql, parameters);
    return rows as readonly Row[];
  };

  readonly run = async (query: Compilable): Promise<number> => {
    const { sql, parameters } = query.compile();
    if (parameters.some(isUnstorable)) return 0;
    return (await this.#ask(sql, parameters)).changed;
  };

  async #ask(sql: string, parameters: readonly unknown[]): ReturnType<OpenTransaction["ask"]> {
    if (this.failure !== undefined) throw this.failure;
    const odd = parameters.find((value) => typeof value === "number" && !Number.isSafeInteger(value));
    if (odd !== undefined)
      throw new RangeError(`parameters of the policy store must be whole numbers, and one is ${odd}`);
    if (this.#place.ended) throw new Error("a view of the policy store was used after its end");
    try {
      return await this.#transaction.ask(sql, parameters);
    } catch (error) {
      this.failure ??= error;
      throw error;
    }
  }
}

function isUnstorable(parameter: unknown): boolean {
  return typeof parameter === "string" && !isStorable(parameter);
}
