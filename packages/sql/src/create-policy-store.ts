import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import type { Database } from "./database.ts";
import { PolicyStoreUnavailable } from "./errors.ts";
import type { PolicyStore } from "./policy-store.ts";
import { createPulseView } from "./queries/pulse.ts";
import { createStoreChange, createStoreNote, createStoreView } from "./queries/store-queries.ts";
import { type Session, transact } from "./transact.ts";

const closeWithinMs = 5_000;
/** A lease that begins later than this from now was made by a clock that was wrong, and is ignored. */
const maxClockStepMs = 60_000;

/** A policy store on a database whose schema is up to date. */
export function createPolicyStore(database: Database): PolicyStore {
  const underWay = new Set<Promise<unknown>>();
  let closed: Promise<void> | undefined;

  const begin: typeof transact = (...args) => {
    if (closed !== undefined)
      return Promise.reject(new PolicyStoreUnavailable(`the policy store ${database.where} is closed`));
    const result = transact(...args);
    const ended: Promise<unknown> = result.then(
      () => underWay.delete(ended),
      () => underWay.delete(ended),
    );
    underWay.add(ended);
    return result;
  };

  /** Waits for transactions that have begun, up to a bound. */
  const close = async (): Promise<void> => {
    const tooLong = new AbortController();
    await Promise.race([
      Promise.all(underWay),
      sleep(closeWithinMs, undefined, { signal: tooLong.signal }).catch(() => undefined),
    ]);
    tooLong.abort();
    await database.close();
  };

  return {
    kind: database.kind,
    where: database.where,
    readPulse: () => begin(database, "look", (session) => createPulseView(session).pulse()),
    read: (work) => begin(database, "read", (session) => work(createStoreView(session))),
    note: (work) => begin(database, "note", (session) => work(createStoreNote(session))),
    upkeep: (work) => begin(database, "upkeep", (session) => work(createStoreNote(session))),
    change: (work, options) =>
      begin(
        database,
        "change",
        async (session) => {
          await lockOutOtherChanges(session);
          return work(createStoreChange(session));
        },
        options,
      ),
    lead: (node, forMs) => begin(database, "note", (session) => lead(session, node, forMs)),
    close() {
      closed ??= close();
      return closed;
    },
  };
}

/**
 * Changes of all nodes take turns by a lock on the one row of the pulse. They are READ COMMITTED: each statement after the lock sees
 * everything that was committed before it, so a change that waited can go on. With a snapshot from before the wait it would have to
 * be retried. SQLite has one writer at a time, starting at BEGIN.
 */
async function lockOutOtherChanges({ database, tables, all }: Session): Promise<void> {
  if (database.kind !== "postgres") return;
  await all(tables.selectFrom("sluice_pulse").select("id").where("id", "=", 1).forUpdate());
}

/** Uses the database's clock, because clocks of nodes differ. Sums cast their parameters, so that no server has to guess a type. */
async function lead({ database, tables, all }: Session, node: string, forMs: number): Promise<boolean> {
  const now = database.nowMs();
  const rows = await all(
    tables
      .insertInto("sluice_leases")
      .values({ name: "leader", holder: node, since_ms: now, until_ms: sql<number>`${now} + cast(${forMs} as bigint)` })
      .onConflict((conflict) =>
        conflict
          .column("name")
          .doUpdateSet((set) => ({
            holder: set.ref("excluded.holder"),
            since_ms: set.ref("excluded.since_ms"),
            until_ms: set.ref("excluded.until_ms"),
          }))
          .where((is) =>
            is.or([
              is("sluice_leases.holder", "=", is.ref("excluded.holder")),
              is("sluice_leases.until_ms", "<=", is.ref("excluded.since_ms")),
              is("sluice_leases.since_ms", ">", is("excluded.since_ms", "+", sql.lit(maxClockStepMs))),
            ]),
          ),
      )
      .returning("holder"),
  );
  return rows.length > 0;
}
