import { CompiledQuery } from "kysely";
import type { Database } from "./database.ts";
import { SchemaTooNew } from "./errors.ts";
import type { Migration } from "./migrations/migration.ts";
import { type Session, transact } from "./transact.ts";

/**
 * Brings the schema to the newest version that is known, one migration a transaction, in turn with all others who do the same.
 * Where there is nothing to do nothing is written, so a node that starts needs no right to create tables.
 */
export async function migrate(database: Database, migrations: readonly Migration[]): Promise<void> {
  const known = migrations.length;
  const refuseNewer = (version: number): number => {
    if (version > known) throw new SchemaTooNew(database.where, version, known);
    return version;
  };
  if ((await findVersion(database)) === undefined) await transact(database, "migrate", createVersion);
  while (refuseNewer((await findVersion(database)) ?? 0) < known) {
    await transact(database, "migrate", async (session) => {
      const next = migrations[refuseNewer(await lockVersion(session))];
      if (next === undefined) return;
      for (const statement of next.statements(database.textType)) await session.run(plain(statement));
      await session.run(
        database.tables.updateTable("sluice_schema").set({ version: next.version }).where("id", "=", 1),
      );
    });
  }
}

/** Undefined where no version of Sluice was here before. */
async function findVersion(database: Database): Promise<number | undefined> {
  try {
    return await transact(database, "look", async ({ all }) => {
      const [row] = await all(database.tables.selectFrom("sluice_schema").select("version").where("id", "=", 1));
      return row?.version ?? 0;
    });
  } catch (error) {
    if (database.lacksTable(error)) return undefined;
    throw error;
  }
}

async function createVersion({ tables, run }: Session): Promise<void> {
  await run(
    plain("create table if not exists sluice_schema (id integer not null primary key, version integer not null)"),
  );
  await run(
    tables
      .insertInto("sluice_schema")
      .values({ id: 1, version: 0 })
      .onConflict((conflict) => conflict.doNothing()),
  );
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
