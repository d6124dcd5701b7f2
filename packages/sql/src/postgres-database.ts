import {
  DummyDriver,
  type Expression,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  sql,
} from "kysely";
import pg from "pg";
import {
  type Answer,
  type Database,
  type OpenTransaction,
  TransactionConflict,
  type TransactionMode,
} from "./database.ts";
import { PolicyStoreUnavailable } from "./errors.ts";
import type { PolicyStoreOptions } from "./policy-store.ts";
import { cutConnection, findPostgres } from "./postgres-client.ts";
import type { Tables } from "./tables.ts";
import { Turns } from "./turns.ts";

const maxConnections = 4;
const idleForMs = 30_000;
const turnWithinMs = 10_000;
const longTimeoutMs = 300_000;
/** On top of the server's own timeout. If this passes too, the network is broken, rather than the server slow. */
const graceMs = 1_000;
const closeWithinMs = 2_000;
/** How long the server waits for the next statement, in statement timeouts: a node that vanishes blocks changes no longer than that. */
const idleTimeouts = 1.5;

/** PostgreSQL, or a server that speaks its protocol and dialect. */
export async function openPostgres({
  notify = true,
  connectTimeoutMs = 5_000,
  statementTimeoutMs = 10_000,
  ...address
}: PolicyStoreOptions): Promise<Database> {
  const { config, Client, where } = findPostgres(address);
  const pool = new pg.Pool({
    ...config,
    Client,
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: idleForMs,
  });
  // A connection that breaks while idle needs no handling: the pool opens another.
  pool.on("error", () => undefined);
  const server = new PostgresServer(pool, where, statementTimeoutMs);
  try {
    await server.recognise(notify);
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

class PostgresServer implements Database {
  readonly kind = "postgres";
  readonly where: string;
  /** Texts sort by their bytes, as in SQLite, whatever the database's collation is. */
  textType = 'text collate "C"';
  notifies = false;
  migratesWhole = true;
  readonly tables: Kysely<Tables>;
  readonly #pool: pg.Pool;
  readonly #open = new Set<pg.PoolClient>();
  readonly #statementTimeoutMs: number;
  readonly #changes: Turns;

  constructor(pool: pg.Pool, where: string, statementTimeoutMs: number) {
    this.#pool = pool;
    this.where = where;
    this.#statementTimeoutMs = statementTimeoutMs;
    this.#changes = new Turns(`the policy store ${where}`);
    pool.on("connect", (client) => {
      this.#open.add(client);
      // Without this, a connection that breaks between leaving the pool and its first use would end the process.
      client.on("error", () => undefined);
    });
    pool.on("remove", (client) => this.#open.delete(client));
    this.tables = new Kysely<Tables>({
      dialect: {
        createAdapter: () => new PostgresAdapter(),
        createDriver: () => new DummyDriver(),
        createIntrospector: (db) => new PostgresIntrospector(db),
        createQueryCompiler: () => new PostgresQueryCompiler(),
      },
    });
  }

  /**
   * CockroachDB always compares texts by their bytes, and has no NOTIFY. A READ COMMITTED transaction there refuses schema changes or
   * is ended by them, and they may fail after a successful COMMIT, so each one runs outside of a transaction.
   */
  async recognise(notify: boolean): Promise<void> {
    const transaction = await this.begin("look");
    try {
      const { rows } = await transaction.ask("select version() as version", []);
      const cockroach = (rows as readonly { version: string }[])[0]?.version.startsWith("CockroachDB") === true;
      if (cockroach) this.textType = "text";
      this.migratesWhole = !cockroach;
      this.notifies = notify && !cockroach;
    } finally {
      await transaction.rollback();
    }
  }

  nowMs(): Expression<number> {
    return sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`;
  }

  /** Changes of this process wait for one another here, so at most one connection waits for changes of other nodes. */
  async begin(mode: TransactionMode): Promise<OpenTransaction> {
    const inTurn = mode === "change" || isMigration(mode);
    const endTurn = inTurn ? await this.#changes.take(turnWithinMs) : () => undefined;
    try {
      const client = await this.#connect();
      const timeoutMs = isMigration(mode) || mode === "upkeep" ? longTimeoutMs : this.#statementTimeoutMs;
      const transaction = new PostgresTransaction(client, { mode, timeoutMs, where: this.where, endTurn });
      try {
        await transaction.begin();
        return transaction;
      } catch (error) {
        await transaction.rollback();
        throw error;
      }
    } catch (error) {
      endTurn();
      throw error;
    }
  }

  async #connect(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw unavailable(this.where, error);
    }
  }

  isMissingTable(error: unknown): boolean {
    return (error as { readonly code?: string }).code === "42P01";
  }

  isDuplicate(error: unknown): boolean {
    const { code = "" } = error as { readonly code?: string };
    return creationStates.has(code) || code === duplicateColumn;
  }

  /** Connections in use are closed after their transaction, or cut if that takes too long. */
  async close(): Promise<void> {
    const timer = setTimeout(() => {
      for (const client of this.#open) cutConnection(client);
    }, closeWithinMs);
    await this.#pool.end().catch(() => undefined);
    clearTimeout(timer);
  }
}

interface TransactionSurroundings {
  readonly mode: TransactionMode;
  readonly timeoutMs: number;
  readonly where: string;
  endTurn(): void;
}

class PostgresTransaction implements OpenTransaction {
  readonly #client: pg.PoolClient;
  readonly #around: TransactionSurroundings;
  #state: "begun" | "released" = "begun";
  #before: Promise<unknown> = Promise.resolve();
  /** Whether the connection can be used again. */
  #sound = true;

  constructor(client: pg.PoolClient, around: TransactionSurroundings) {
    this.#client = client;
    this.#around = around;
    client.on("error", this.#onError);
  }

  /** Timeouts are set for this transaction alone, which connection poolers allow. One round trip does it all. */
  async begin(): Promise<void> {
    const { mode, timeoutMs } = this.#around;
    if (isSingle(mode)) return;
    const isolation = mode === "read" ? "repeatable read, read only" : "read committed";
    await this.#send(
      `begin isolation level ${isolation}; set local statement_timeout = ${timeoutMs}; ` +
        `set local idle_in_transaction_session_timeout = ${Math.ceil(timeoutMs * idleTimeouts)}`,
    );
  }

  async ask(statement: string, parameters: readonly unknown[]): Promise<Answer> {
    const { rows, rowCount } = await this.#send(statement, parameters);
    return { rows, changed: rowCount ?? 0 };
  }

  /** Without an answer the commit may have happened, so it is never repeated. */
  async commit(): Promise<void> {
    if (!isSingle(this.#around.mode)) {
      try {
        const { command } = await this.#send("commit");
        if (command !== "COMMIT") throw new Error(`the policy store ${this.#around.where} rolled a transaction back`);
      } catch (error) {
        if (!(error instanceof PolicyStoreUnavailable)) throw error;
        const unknown = "whether the last change was made is not known";
        throw new PolicyStoreUnavailable(`${error.message}; ${unknown}`, { maybeDone: true });
      }
    }
    this.#release();
  }

  async rollback(): Promise<void> {
    if (this.#state === "released") return;
    if (this.#sound && !isSingle(this.#around.mode)) await this.#send("rollback").catch(() => undefined);
    this.#release();
  }

  #release(): void {
    this.#state = "released";
    this.#client.off("error", this.#onError);
    this.#client.release(!this.#sound);
    this.#around.endTurn();
  }

  /** One after another, as `pg` requires, even if several are asked at once. */
  #send(statement: string, parameters?: readonly unknown[]): Promise<pg.QueryResult> {
    const answer = this.#before.then(() => this.#sendNow(statement, parameters));
    this.#before = answer.catch(() => undefined);
    return answer;
  }

  async #sendNow(statement: string, parameters: readonly unknown[] | undefined): Promise<pg.QueryResult> {
    const timer = setTimeout(() => {
      this.#sound = false;
      cutConnection(this.#client);
    }, this.#around.timeoutMs + graceMs);
    try {
      // `pg` takes several statements in one text only without a list of parameters, even an empty one.
      return parameters === undefined
        ? await this.#client.query(statement)
        : await this.#client.query(statement, [...parameters]);
    } catch (error) {
      throw this.#translate(error);
    } finally {
      clearTimeout(timer);
    }
  }

  #translate(error: unknown): unknown {
    const { mode, where } = this.#around;
    const code = findSqlState(error);
    if (code === undefined || isUnavailable(code)) {
      this.#sound = false;
      return unavailable(where, error);
    }
    const conflicts =
      conflictStates.has(code) ||
      // Two nodes that create the same table at once collide in PostgreSQL's own tables.
      (mode === "migrate" && creationStates.has(code)) ||
      // Another node is creating the same object.
      (mode === "alone" && code === "55000");
    return conflicts ? new TransactionConflict((error as Error).message) : error;
  }

  readonly #onError = (): void => {
    this.#sound = false;
  };
}

/** Serialization failure, deadlock. */
const conflictStates = new Set(["40001", "40P01"]);
/** Unique violation; duplicate table or index, object. */
const creationStates = new Set(["23505", "42P07", "42710"]);
const duplicateColumn = "42701";

/** One statement, without BEGIN and COMMIT. */
function isSingle(mode: TransactionMode): boolean {
  return mode === "look" || mode === "alone";
}

function isMigration(mode: TransactionMode): boolean {
  return mode === "migrate" || mode === "alone";
}

/**
 * Connection, authentication, no such database, resources, operator intervention (shutdown, timeout), system errors; read-only (a
 * standby), idle in transaction, lock not available, completion unknown.
 */
function isUnavailable(state: string): boolean {
  const classes = ["08", "28", "3D", "53", "57", "58"];
  return classes.includes(state.slice(0, 2)) || ["25006", "25P03", "55P03", "40003"].includes(state);
}

/** The SQLSTATE of an error of the server; undefined for any other error. */
function findSqlState(error: unknown): string | undefined {
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  return typeof code === "string" && severity !== undefined ? code : undefined;
}

function unavailable(where: string, error: unknown): PolicyStoreUnavailable {
  const { message, code } = error as { readonly message: string; readonly code?: string };
  return new PolicyStoreUnavailable(`the policy store ${where} is unavailable: ${message || code}`);
}
