import { closeSync, mkdirSync, openSync, statSync } from "node:fs";
import path from "node:path";
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { setImmediate as nextRound, setTimeout as sleep } from "node:timers/promises";
import {
  DummyDriver,
  type Expression,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from "kysely";
import {
  type Answer,
  type Database,
  type OpenTransaction,
  TransactionConflict,
  type TransactionMode,
} from "./database.ts";
import { PolicyStoreUnavailable } from "./errors.ts";
import type { Tables } from "./tables.ts";
import { Turns } from "./turns.ts";

const turnWithinMs = 10_000;
const openWithinMs = 10_000;
const openPauseMs = 20;
/** How long statements may run one after another before the rest of the process gets a turn. */
const maxStretchMs = 5;
const rowsAtOnce = 256;

/** SQLite's primary result codes, and what they mean here. */
const busyCodes = new Set([5, 6]);
const unavailableCodes = new Map([
  [3, "permission is denied"],
  [7, "out of memory"],
  [8, "it is read-only"],
  [10, "it cannot be read or written"],
  [11, "it is damaged"],
  [13, "the disk is full"],
  [14, "it cannot be opened"],
  [15, "it cannot be locked"],
  [26, "it is not an SQLite database"],
]);

/**
 * Opens an SQLite file, or with `:memory:` a database that is gone when it is closed. Several processes may have the file open. Its
 * one connection is synchronous, so transactions take turns on it. While another process writes, this one tries again; it does
 * not wait inside SQLite, which would block everything else in this process.
 */
export async function openSqlite(file: string): Promise<Database> {
  const { DatabaseSync } = await import("node:sqlite");
  const memory = file === ":memory:";
  const where = memory ? "sqlite::memory:" : `sqlite:${path.resolve(file)}`;
  if (!memory) createFile(path.resolve(file), where);
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(memory ? file : path.resolve(file), { timeout: 0 });
    await prepare(connection);
  } catch (error) {
    if (connection?.isOpen === true) connection.close();
    throw translate(error, where);
  }
  return new SqliteFile(connection, where, memory ? undefined : path.resolve(file));
}

/** Differs between a file and one that replaced it; undefined if there is no file. */
function findFileIdentity(file: string): string | undefined {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev} ${found.ino}`;
}

/**
 * Creates the file, and its folder if needed, readable by the owner alone. An existing file is not opened: closing it would release
 * the locks that another connection of this process holds on it.
 */
function createFile(file: string, where: string): void {
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    closeSync(openSync(file, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return;
    throw new PolicyStoreUnavailable(`the policy store ${where} cannot be created: ${(error as Error).message}`);
  }
}

/** With a write-ahead log, readers and a writer do not block each other. Waits for another process that opens the file now. */
async function prepare(connection: DatabaseSync): Promise<void> {
  const deadlineMs = performance.now() + openWithinMs;
  for (;;) {
    try {
      connection.exec("pragma journal_mode = wal; pragma synchronous = full");
      return;
    } catch (error) {
      if (!busyCodes.has(primaryCode(error)) || performance.now() > deadlineMs) throw error;
      await sleep(Math.random() * openPauseMs);
    }
  }
}

class SqliteFile implements Database {
  readonly kind = "sqlite";
  readonly where: string;
  readonly textType = "text";
  readonly notifies = false;
  readonly migratesWhole = true;
  readonly tables: Kysely<Tables>;
  readonly #connection: DatabaseSync;
  readonly #turns: Turns;
  /** Undefined in memory. */
  readonly #file: string | undefined;
  readonly #identity: string | undefined;

  constructor(connection: DatabaseSync, where: string, file: string | undefined) {
    this.#connection = connection;
    this.where = where;
    this.#file = file;
    this.#identity = file === undefined ? undefined : findFileIdentity(file);
    this.#turns = new Turns(`the policy store ${where}`);
    this.tables = new Kysely<Tables>({
      dialect: {
        createAdapter: () => new SqliteAdapter(),
        createDriver: () => new DummyDriver(),
        createIntrospector: (db) => new SqliteIntrospector(db),
        createQueryCompiler: () => new SqliteQueryCompiler(),
      },
    });
  }

  /** All processes that have the file open run on one machine. */
  nowMs(): Expression<number> {
    return sql<number>`${Date.now()}`;
  }

  async begin(mode: TransactionMode): Promise<OpenTransaction> {
    const endTurn = await this.#turns.take(turnWithinMs);
    // Nothing below waits for I/O. Without this, a caller that asks in a loop would starve the rest of the process.
    await nextRound();
    const writes = mode !== "look" && mode !== "read";
    try {
      if (!this.#connection.isOpen) throw new PolicyStoreUnavailable(`the policy store ${this.where} is closed`);
      this.#checkInPlace();
      // A change is on disk when its promise resolves. Notes survive the process; a power failure may lose the most recent ones.
      if (writes)
        this.#connection.exec(`pragma synchronous = ${mode === "note" || mode === "upkeep" ? "normal" : "full"}`);
      if (mode !== "look") this.#connection.exec(writes ? "begin immediate" : "begin");
    } catch (error) {
      endTurn();
      throw translate(error, this.where);
    }
    return new SqliteTransaction(this.#connection, this.where, writes, endTurn);
  }

  /**
   * SQLite goes on writing to a file that was deleted or replaced, without an error. Changes would be lost with this process, and
   * a process that opens the new file would decide by other policies.
   */
  #checkInPlace(): void {
    if (this.#file === undefined || findFileIdentity(this.#file) === this.#identity) return;
    const why =
      "its file was deleted or replaced while it was open; restore the file, or restart to use the one that is there now";
    throw new PolicyStoreUnavailable(`the policy store ${this.where} cannot be used: ${why}`);
  }

  isMissingTable(error: unknown): boolean {
    return primaryCode(error) === 1 && (error as Error).message.startsWith("no such table");
  }

  isDuplicate(): boolean {
    return false;
  }

  async close(): Promise<void> {
    const endTurn = await this.#turns.take(turnWithinMs).catch(() => () => undefined);
    if (this.#connection.isOpen) this.#connection.close();
    endTurn();
  }
}

class SqliteTransaction implements OpenTransaction {
  readonly #connection: DatabaseSync;
  readonly #where: string;
  readonly #writes: boolean;
  readonly #endTurn: () => void;
  #over = false;
  #stretchBeganMs = performance.now();

  constructor(connection: DatabaseSync, where: string, writes: boolean, endTurn: () => void) {
    this.#connection = connection;
    this.#where = where;
    this.#writes = writes;
    this.#endTurn = endTurn;
  }

  async ask(statement: string, parameters: readonly unknown[]): Promise<Answer> {
    await this.#yieldToOthers();
    try {
      const prepared = this.#connection.prepare(statement);
      const values = parameters as readonly SQLInputValue[];
      if (prepared.columns().length > 0) return { rows: await this.#readRows(prepared, values), changed: 0 };
      return { rows: [], changed: Number(prepared.run(...values).changes) };
    } catch (error) {
      throw translate(error, this.#where);
    }
  }

  /** Reads long lists in stretches. A transaction that writes reads at once, because it could change what it is reading. */
  async #readRows(prepared: StatementSync, values: readonly SQLInputValue[]): Promise<readonly unknown[]> {
    if (this.#writes) return prepared.all(...values);
    const rows: unknown[] = [];
    for (const row of prepared.iterate(...values)) {
      rows.push(row);
      if (rows.length % rowsAtOnce === 0) await this.#yieldToOthers();
    }
    return rows;
  }

  /** Gives the rest of the process a turn if it has waited for long enough. */
  async #yieldToOthers(): Promise<void> {
    if (performance.now() - this.#stretchBeganMs <= maxStretchMs) return;
    await nextRound();
    this.#stretchBeganMs = performance.now();
    if (this.#over)
      throw new Error("a transaction of the policy store ended before one of its statements: await every statement");
  }

  async commit(): Promise<void> {
    this.#over = true;
    try {
      if (this.#connection.isTransaction) this.#connection.exec("commit");
    } catch (error) {
      throw translate(error, this.#where);
    }
    this.#endTurn();
  }

  async rollback(): Promise<void> {
    this.#over = true;
    try {
      if (this.#connection.isOpen && this.#connection.isTransaction) this.#connection.exec("rollback");
    } catch {
      // SQLite has undone it already.
    }
    this.#endTurn();
  }
}

/** The low byte of an SQLite error code; the rest are details. */
function primaryCode(error: unknown): number {
  return ((error as { readonly errcode?: number }).errcode ?? 0) & 0xff;
}

function translate(error: unknown, where: string): unknown {
  const code = primaryCode(error);
  if (busyCodes.has(code)) return new TransactionConflict("another process is writing to it");
  const why = unavailableCodes.get(code);
  return why === undefined ? error : new PolicyStoreUnavailable(`the policy store ${where} cannot be used: ${why}`);
}
