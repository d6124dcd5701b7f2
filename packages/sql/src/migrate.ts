import { type Compilable, CompiledQuery } from "kysely";
import type { Database } from "./database.ts";
import { SchemaTooNew } from "./errors.ts";
import type { Migration } from "./migrations/migration.ts";
import { type Session, transact } from "./transact.ts";

/**
 * Brings the schema to the newest version that is known, one migration after another, in turn with other nodes that do the same.
 * A schema that is up to date is not written to, so a node may start without the right to create tables.
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
    if (!database.migratesWhole) await applyOneByOne(database, next);
    else
      await transact(database, "migrate", async (session) => {
        // Another node may have done it first.
        if (refuseNewer(await lockVersion(session)) === version) await apply(session, next);
      });
  }
}

async function apply({ database, run }: Session, next: Migration): Promise<void> {
  for (const statement of next.statements(database.textType)) await run(plain(statement));
  await run(raiseVersion(database, next));
}

/** The version is raised last: it says that all statements ran. */
async function applyOneByOne(database: Database, next: Migration): Promise<void> {
  for (const statement of next.statements(database.textType)) await runAlone(database, plain(statement));
  await runAlone(database, raiseVersion(database, next));
}

/** Skips what exists already, after a restart or because another node migrates at the same time. */
async function runAlone(database: Database, statement: Compilable): Promise<void> {
  try {
    await transact(database, "alone", ({ run }) => run(statement));
  } catch (error) {
    if (!database.isDuplicate(error)) throw error;
  }
}

/** Never lowers it: another node may be further. */
function raiseVersion({ tables }: Database, { version }: Migration): Compilable {
  return tables.updateTable("sluice_schema").set({ version }).where("id", "=", 1).where("version", "<", version);
}

/** Undefined if there is no schema yet, or only its beginning. */
async function findVersion(database: Database): Promise<number | undefined> {
  try {
    return await transact(database, "look", async ({ all }) => {
      const [row] = await all(database.tables.selectFrom("sluice_schema").select("version").where("id", "=", 1));
      return row?.version;
    });
  } catch (error) {
    if (database.isMissingTable(error)) return undefined;
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
  else for (const statement of statements) await runAlone(database, statement);
}

/** Waits until no other node migrates. SQLite has one writer at a time, and needs no lock. */
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
