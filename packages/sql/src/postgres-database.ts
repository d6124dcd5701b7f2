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
import { type Answer, type Database, MetAnother, type OpenTransaction, type TransactionMode } from "./database.ts";
import { PolicyStoreUnavailable } from "./errors.ts";
import { cutConnection, findPostgres } from "./postgres-client.ts";
import type { Tables } from "./tables.ts";
import { Turns } from "./turns.ts";

const maxConnections = 4;
const idleForMs = 30_000;
const turnWithinMs = 10_000;
const migrationTimeoutMs = 300_000;
/** Beyond the server's own timeout: then it is not the server that is slow, the way to it is broken. */
const graceMs = 1_000;
const closeWithinMs = 2_000;
/**
 * How long the server waits for the next statement, in statement timeouts: a node that vanished holds up nobody's changes for
 * longer.
 */
const idleTimeouts = 1.5;

export interface PostgresOptions {
  readonly url: string;
  readonly applicationName?: string | undefined;
  readonly notify?: boolean | undefined;
  readonly connectTimeoutMs?: number | undefined;
  readonly statementTimeoutMs?: number | undefined;
}

/** PostgreSQL, or a server that speaks its protocol and dialect. */
export async function openPostgres({
  url,
  applicationName,
  notify = true,
  connectTimeoutMs = 5_000,
  statementTimeoutMs = 10_000,
}: PostgresOptions): Promise<Database> {
  const { config, where } = findPostgres(url, applicationName);
  const pool = new pg.Pool({
    ...config,
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: idleForMs,
  });
  // A connection that breaks while nobody uses it is no concern of anybody: the pool opens another.
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
  /** Whatever order the database's own collation has, texts sort by their bytes, as they do in SQLite. */
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
      // One that breaks in the moment between being had from the pool and being used would end the process without this.
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
   * CockroachDB compares texts by their bytes anyway, and knows no NOTIFY. What changes its schema is refused in a transaction that
   * is READ COMMITTED, or ends that transaction, and may fail after a COMMIT that succeeded: there it stands alone.
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

  /** Changes of this process wait here for one another, so that those who wait for other nodes' take up one connection at most. */
  async begin(mode: TransactionMode): Promise<OpenTransaction> {
    const inTurn = mode === "change" || isMigration(mode);
    const endTurn = inTurn ? await this.#changes.take(turnWithinMs) : () => undefined;
    try {
      const client = await this.#connect();
      const timeoutMs = isMigration(mode) ? migrationTimeoutMs : this.#statementTimeoutMs;
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

  lacksTable(error: unknown): boolean {
    return (error as { readonly code?: string }).code === "42P01";
  }

  finds(error: unknown): boolean {
    const { code = "" } = error as { readonly code?: string };
    return creationStates.has(code) || code === duplicateColumn;
  }

  /** Connections that are in use end with what they are used for, if that is soon. */
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
  /** Whether it may be used again. */
  #sound = true;

  constructor(client: pg.PoolClient, around: TransactionSurroundings) {
    this.#client = client;
    this.#around = around;
    client.on("error", this.#onError);
  }

  /**
   * Timeouts are set for this transaction alone, which poolers between here and the server let through. All of it travels at once.
   */
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

  /** Where no answer comes it may have been done, and is never repeated. */
  async commit(): Promise<void> {
    if (!isSingle(this.#around.mode)) {
      try {
        const { command } = await this.#send("commit");
        if (command !== "COMMIT") throw new Error(`the policy store ${this.#around.where} has undone a transaction`);
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

  /** One after another, as `pg` wants it, also when several are asked at once. */
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
      // Several statements at once are sent without parameters, not even none of them.
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
    const code = stateOf(error);
    if (code === undefined || isUnavailable(code)) {
      this.#sound = false;
      return unavailable(where, error);
    }
    const meets =
      conflictStates.has(code) ||
      // Two who create the same table at once collide in PostgreSQL's own tables.
      (mode === "migrate" && creationStates.has(code)) ||
      // Another is just making the same.
      (mode === "alone" && code === "55000");
    return meets ? new MetAnother((error as Error).message) : error;
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

/** One statement that is a transaction by itself. */
function isSingle(mode: TransactionMode): boolean {
  return mode === "look" || mode === "alone";
}

function isMigration(mode: TransactionMode): boolean {
  return mode === "migrate" || mode === "alone";
}

/**
 * Connection, authentication, no such database, resources, operator intervention (shutdown, timeout), system errors; read-only (a
 * standby), idle in transaction, lock not to be had, completion unknown.
 */
function isUnavailable(state: string): boolean {
  const classes = ["08", "28", "3D", "53", "57", "58"];
  return classes.includes(state.slice(0, 2)) || ["25006", "25P03", "55P03", "40003"].includes(state);
}

/** What the server said, by its SQLSTATE; undefined where it is not the server that speaks. */
function stateOf(error: unknown): string | undefined {
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  return typeof code === "string" && severity !== undefined ? code : undefined;
}

function unavailable(where: string, error: unknown): PolicyStoreUnavailable {
  const { message, code } = error as { readonly message: string; readonly code?: string };
  return new PolicyStoreUnavailable(`the policy store ${where} cannot be asked: ${message || code}`);
}
