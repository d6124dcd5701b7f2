import pg from "pg";
import { cutConnection, findPostgres, type PostgresAddress } from "../postgres-client.ts";
import { CallFailed, type CounterDatabase, type DecideRows } from "./counter-database.ts";
import type { StoredRow } from "./counter-row.ts";
import type { FoundRows, RowChanges } from "./rows-in-turn.ts";

const connectWithinMs = 2_000;
const idleForMs = 60_000;
const sweepWithinMs = 5_000;
/** On top of the server's own timeout. If this passes too, the network is broken, rather than the server slow. */
const graceMs = 250;
/** How long a row waits for the first transaction that writes it. */
const newRowMs = 60_000;
/** A row is deleted so long after it has become idle, so that small steps of the clock lose nothing. */
const sweepAfterMs = 60_000;

const now = "select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now_ms";
const columns = "id, state, until_ms";

interface ReadRow {
  readonly id: string;
  readonly state: string;
  readonly until_ms: number;
}

/**
 * Rows in PostgreSQL. A transaction is two round trips, each one text of several statements:
 *
 *     lock and read the rows, in the order of their ids; read the marks; read the clock ─► decide ─► write and commit
 *
 * Rows that do not exist cannot be locked. They are created empty first, in a transaction of nothing else, so all
 * transactions lock in one order, and none waits for another in a circle.
 */
export class PostgresCounters implements CounterDatabase {
  readonly where: string;
  readonly #pool: pg.Pool;
  readonly #open = new Set<pg.PoolClient>();

  constructor(address: PostgresAddress, maxConnections: number) {
    const { config, Client, where } = findPostgres(address);
    this.where = where;
    this.#pool = new pg.Pool({
      ...config,
      Client,
      max: maxConnections,
      connectionTimeoutMillis: connectWithinMs,
      idleTimeoutMillis: idleForMs,
      allowExitOnIdle: true,
    });
    // A connection that breaks while idle needs no handling: the pool opens another.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (client) => {
      this.#open.add(client);
      client.on("error", () => undefined);
    });
    this.#pool.on("remove", (client) => this.#open.delete(client));
  }

  change(rows: readonly string[], marks: readonly string[], withinMs: number, decide: DecideRows): Promise<void> {
    return this.#call(withinMs, async (connection) => {
      const lock = [
        begin("read committed", withinMs),
        `select ${columns} from sluice_counters where id in (${listOf(rows)}) order by id for update`,
        ...(marks.length === 0 ? [] : [`select ${columns} from sluice_counters where id in (${listOf(marks)})`]),
        now,
      ].join("; ");
      let found = await connection.read(lock);
      for (;;) {
        const missing = rows.filter((id) => !found.rows.has(id));
        if (missing.length === 0) break;
        found = await connection.read(`rollback; ${create(missing, found.nowMs + newRowMs)}; ${lock}`);
      }
      const changes = decide(found);
      if (changes.put.length + changes.drop.length === 0) await connection.run("rollback");
      else await connection.commit(write(changes));
    });
  }

  look(rows: readonly string[], withinMs: number): Promise<FoundRows> {
    const read = rows.length === 0 ? [] : [`select ${columns} from sluice_counters where id in (${listOf(rows)})`];
    const text = [begin("read committed, read only", withinMs), ...read, now, "commit"].join("; ");
    return this.#call(withinMs, (connection) => connection.read(text));
  }

  sweep(after: string, atMost: number): ReturnType<CounterDatabase["sweep"]> {
    const slice = `select ${columns} from sluice_counters where id > ${pg.escapeLiteral(after)} order by id limit ${atMost}`;
    return this.#call(sweepWithinMs, async (connection) => {
      const { rows, nowMs } = await connection.read(`${slice}; ${now}`);
      const endedMs = nowMs - sweepAfterMs;
      const ended = [...rows.values()].filter(({ untilMs }) => untilMs < endedMs).map(({ id }) => id);
      const last = rows.size < atMost ? undefined : [...rows.keys()].at(-1);
      if (ended.length === 0) return { last, deleted: 0 };
      const [{ rowCount } = { rowCount: 0 }] = await connection.run(
        `delete from sluice_counters where id in (${listOf(ended)}) and until_ms < ${endedMs}`,
      );
      return { last, deleted: rowCount ?? 0 };
    });
  }

  async close(): Promise<void> {
    const timer = setTimeout(() => {
      for (const client of this.#open) cutConnection(client);
    }, connectWithinMs);
    await this.#pool.end().catch(() => undefined);
    clearTimeout(timer);
  }

  async #call<T>(withinMs: number, work: (connection: Connection) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw new CallFailed("undone", `${this.where} cannot be reached`, { cause: error });
    });
    const connection = new Connection(client, this.where, withinMs);
    try {
      return await work(connection);
    } catch (error) {
      await connection.rollback();
      throw error;
    } finally {
      connection.release();
    }
  }
}

/** One connection during one call. */
class Connection {
  readonly #client: pg.PoolClient;
  readonly #where: string;
  readonly #timer: NodeJS.Timeout;
  #late = false;
  /** Whether the connection can be used again. */
  #sound = true;

  constructor(client: pg.PoolClient, where: string, withinMs: number) {
    this.#client = client;
    this.#where = where;
    this.#timer = setTimeout(() => {
      this.#late = true;
      this.#sound = false;
      cutConnection(client);
    }, withinMs + graceMs);
  }

  async read(text: string): Promise<FoundRows> {
    const rows = new Map<string, StoredRow>();
    let nowMs = 0;
    for (const result of await this.run(text)) {
      for (const row of result.rows as readonly (ReadRow & { readonly now_ms?: number })[]) {
        if (row.now_ms !== undefined) nowMs = row.now_ms;
        else rows.set(row.id, { id: row.id, state: row.state, untilMs: row.until_ms });
      }
    }
    return { rows, nowMs };
  }

  async run(text: string): Promise<readonly pg.QueryResult[]> {
    try {
      return await this.#send(text);
    } catch (error) {
      throw this.#failure(error, "undone");
    }
  }

  /** Only an error that leaves the connection open shows that nothing was committed. */
  async commit(text: string): Promise<void> {
    try {
      const results = await this.#send(`${text}; commit`);
      if (results.at(-1)?.command !== "COMMIT") throw new CallFailed("undone", `${this.#where} undid a transaction`);
    } catch (error) {
      throw error instanceof CallFailed ? error : this.#failure(error, isCertain(error) ? "undone" : "unknown");
    }
  }

  async rollback(): Promise<void> {
    if (this.#sound) await this.#client.query("rollback").catch(() => undefined);
  }

  release(): void {
    clearTimeout(this.#timer);
    this.#client.release(!this.#sound);
  }

  async #send(text: string): Promise<readonly pg.QueryResult[]> {
    const results: pg.QueryResult | readonly pg.QueryResult[] = await this.#client.query(text);
    return Array.isArray(results) ? (results as readonly pg.QueryResult[]) : [results as pg.QueryResult];
  }

  #failure(error: unknown, outcome: "undone" | "unknown"): CallFailed {
    const { code = "", message } = error as { readonly code?: string; readonly message: string };
    if (!isCertain(error)) this.#sound = false;
    if (outcome === "undone" && conflictStates.has(code)) return new CallFailed("conflict", message, { cause: error });
    const late = this.#late || lateStates.has(code);
    return new CallFailed(outcome, `${this.#where}: ${message}`, { cause: error, late });
  }
}

/** Serialization failure, deadlock. */
const conflictStates = new Set(["40001", "40P01"]);
/** Cancelled because of the statement timeout, lock not available. */
const lateStates = new Set(["57014", "55P03"]);

/** An error of the server about the statement, after which the connection and the transaction are still there. */
function isCertain(error: unknown): boolean {
  const { severity, code } = error as { readonly severity?: unknown; readonly code?: unknown };
  return severity === "ERROR" && code !== "40003";
}

/** A node that vanishes holds its rows no longer than the call may take. */
function begin(mode: string, withinMs: number): string {
  const timeoutMs = Math.max(Math.ceil(withinMs), 1);
  return (
    `begin isolation level ${mode}; set local statement_timeout = ${timeoutMs}; ` +
    `set local idle_in_transaction_session_timeout = ${timeoutMs + graceMs}`
  );
}

/** What is lost of it by a crash is created again. */
function create(ids: readonly string[], untilMs: number): string {
  const values = [...ids].sort().map((id) => `(${pg.escapeLiteral(id)}, '', ${untilMs})`);
  return (
    "begin isolation level read committed; set local synchronous_commit = off; " +
    `insert into sluice_counters (${columns}) values ${values.join(", ")} on conflict (id) do nothing; commit`
  );
}

function write({ put, drop }: RowChanges): string {
  const statements: string[] = [];
  if (put.length > 0) {
    const values = put.map(
      ({ id, state, untilMs }) => `(${pg.escapeLiteral(id)}, ${pg.escapeLiteral(state)}, ${untilMs})`,
    );
    statements.push(
      `insert into sluice_counters (${columns}) values ${values.join(", ")} ` +
        "on conflict (id) do update set state = excluded.state, until_ms = excluded.until_ms",
    );
  }
  if (drop.length > 0) statements.push(`delete from sluice_counters where id in (${listOf(drop)})`);
  return statements.join("; ");
}

function listOf(ids: readonly string[]): string {
  return ids.map((id) => pg.escapeLiteral(id)).join(", ");
}
