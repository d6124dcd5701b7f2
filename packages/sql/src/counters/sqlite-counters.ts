import { type Database, type OpenTransaction, TransactionConflict, type TransactionMode } from "../database.ts";
import { PolicyStoreUnavailable } from "../errors.ts";
import { CallFailed, type CounterDatabase, type DecideRows } from "./counter-database.ts";
import type { StoredRow } from "./counter-row.ts";
import type { FoundRows } from "./rows-in-turn.ts";

/** A row is deleted so long after it has become idle, so that small steps of the clock lose nothing. */
const sweepAfterMs = 60_000;
/** SQLite takes so many parameters in any version. */
const atOnce = 500;

const columns = "id, state, until_ms";

/** Rows in an SQLite file, for one machine. A transaction that writes is the only one, so rows need no locks. */
export class SqliteCounters implements CounterDatabase {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  get where(): string {
    return this.#database.where;
  }

  change(rows: readonly string[], marks: readonly string[], _withinMs: number, decide: DecideRows): Promise<void> {
    return this.#transact("change", async (transaction) => {
      const { put, drop } = decide(await find(transaction, [...rows, ...marks]));
      for (const some of inParts(put, Math.floor(atOnce / 3))) {
        await transaction.ask(
          `insert into sluice_counters (${columns}) values ${some.map(() => "(?, ?, ?)").join(", ")} ` +
            "on conflict (id) do update set state = excluded.state, until_ms = excluded.until_ms",
          some.flatMap(({ id, state, untilMs }) => [id, state, untilMs]),
        );
      }
      await deleteRows(transaction, drop);
    });
  }

  look(rows: readonly string[]): Promise<FoundRows> {
    return this.#transact("read", (transaction) => find(transaction, rows));
  }

  async sweep(after: string, atMost: number): ReturnType<CounterDatabase["sweep"]> {
    const endedMs = Date.now() - sweepAfterMs;
    const rows = await this.#transact("look", async (transaction) => {
      const { rows: some } = await transaction.ask(
        `select ${columns} from sluice_counters where id > ? order by id limit ?`,
        [after, atMost],
      );
      return some as readonly ReadRow[];
    });
    const ended = rows.filter(({ until_ms }) => until_ms < endedMs).map(({ id }) => id);
    const last = rows.length < atMost ? undefined : rows.at(-1)?.id;
    if (ended.length === 0) return { last, deleted: 0 };
    const deleted = await this.#transact("note", (transaction) => deleteRows(transaction, ended, endedMs));
    return { last, deleted };
  }

  close(): Promise<void> {
    return this.#database.close();
  }

  async #transact<T>(mode: TransactionMode, work: (transaction: OpenTransaction) => Promise<T>): Promise<T> {
    try {
      const transaction = await this.#database.begin(mode);
      try {
        const result = await work(transaction);
        await transaction.commit();
        return result;
      } catch (error) {
        await transaction.rollback();
        throw error;
      }
    } catch (error) {
      const { message } = error as Error;
      if (error instanceof TransactionConflict) throw new CallFailed("conflict", message, { cause: error });
      const unknown = error instanceof PolicyStoreUnavailable && error.maybeDone;
      throw new CallFailed(unknown ? "unknown" : "undone", message, { cause: error });
    }
  }
}

interface ReadRow {
  readonly id: string;
  readonly state: string;
  readonly until_ms: number;
}

/** All processes that have the file open run on one machine, and have one clock. */
async function find(transaction: OpenTransaction, ids: readonly string[]): Promise<FoundRows> {
  const rows = new Map<string, StoredRow>();
  for (const some of inParts(ids, atOnce)) {
    const { rows: found } = await transaction.ask(
      `select ${columns} from sluice_counters where id in (${some.map(() => "?").join(", ")})`,
      some,
    );
    for (const { id, state, until_ms } of found as readonly ReadRow[]) rows.set(id, { id, state, untilMs: until_ms });
  }
  return { rows, nowMs: Date.now() };
}

async function deleteRows(
  transaction: OpenTransaction,
  ids: readonly string[],
  endedMs = Number.MAX_SAFE_INTEGER,
): Promise<number> {
  let deleted = 0;
  for (const some of inParts(ids, atOnce)) {
    const { changed } = await transaction.ask(
      `delete from sluice_counters where id in (${some.map(() => "?").join(", ")}) and until_ms < ?`,
      [...some, endedMs],
    );
    deleted += changed;
  }
  return deleted;
}

function inParts<T>(list: readonly T[], size: number): readonly (readonly T[])[] {
  const parts: (readonly T[])[] = [];
  for (let start = 0; start < list.length; start += size) parts.push(list.slice(start, start + size));
  return parts;
}
