import { type Compilable, CompiledQuery } from "kysely";
import type { Database } from "./database.ts";
import { SchemaTooNew } from "./errors.ts";
import type { Migration } from "./migrations/migration.ts";
import { type Session, transact } from "./transact.ts";

/**
 * Brings the schema to the newest version that is known, one migration after another, in turn with all others who do the same.
 * Where there is nothing to do nothing is written, so a node that starts needs no right to create tables.
 */
export async function migrate(database: Database, migrations: readonly Migration[]): Promise<void> {
  const known = migrations.length;
  const refuseNewer = (version: number): number => {
    if (version > known) throw new SchemaTooNew(database.where, version, known);
    return version;
  };
  if ((await findVersion(database)) === undefined) await createVersion(database);
  for (;;) {
    const version = refuseNewer((await findVersion(database)) ?? 0);
    const next = migrations[version];
    if (next === undefined) return;
    if (!database.migratesWhole) await carryOutOneByOne(database, next);
    else
      await transact(database, "migrate", async (session) => {
        // Whoever had the turn before may have done it.
        if (refuseNewer(await lockVersion(session)) === version) await carryOut(session, next);
      });
  }
}

async function carryOut({ database, run }: Session, next: Migration): Promise<void> {
  for (const statement of next.statements(database.textType)) await run(plain(statement));
  await run(raiseVersion(database, next));
}

/** The version says that all of it is done. */
async function carryOutOneByOne(database: Database, next: Migration): Promise<void> {
  for (const statement of next.statements(database.textType)) await carryOutAlone(database, plain(statement));
  await carryOutAlone(database, raiseVersion(database, next));
}

/** Who begins anew, or beside others, passes over what is there. */
async function carryOutAlone(database: Database, statement: Compilable): Promise<void> {
  try {
    await transact(database, "alone", ({ run }) => run(statement));
  } catch (error) {
    if (!database.finds(error)) throw error;
  }
}

/** Never lowers it: others may be further. */
function raiseVersion({ tables }: Database, { version }: Migration): Compilable {
  return tables.updateTable("sluice_schema").set({ version }).where("id", "=", 1).where("version", "<", version);
}

/** Undefined where no version of Sluice was here before, or did not get far. */
async function findVersion(database: Database): Promise<number | undefined> {
  try {
    return await transact(database, "look", async ({ all }) => {
      const [row] = await all(database.tables.selectFrom("sluice_schema").select("version").where("id", "=", 1));
      return row?.version;
    });
  } catch (error) {
    if (database.lacksTable(error)) return undefined;
    throw error;
  }
}

async function createVersion(database: Database): Promise<void> {
  const statements = [
    plain("create table if not exists sluice_schema (id integer not null primary key, version integer not null)"),
    database.tables
      .insertInto("sluice_schema")
      .values({ id: 1, version: 0 })
      .onConflict((conflict) => conflict.doNothing()),
  ];
  if (database.migratesWhole)
    await transact(database, "migrate", async ({ run }) => {
      for (const statement of statements) await run(statement);
    });
  else for (const statement of statements) await carryOutAlone(database, statement);
}

/** As it is once whoever else migrates is done. SQLite has one writer at a time, and needs no lock. */
async function lockVersion({ database, tables, all }: Session): Promise<number> {
  const [row] = await all(
    tables
      .selectFrom("sluice_schema")
      .select("version")
      .where("id", "=", 1)
      .$if(database.kind === "postgres", (query) => query.forUpdate()),
  );
  return row?.version ?? 0;
}

function plain(statement: string): { compile(): CompiledQuery } {
  return { compile: () => CompiledQuery.raw(statement) };
}
