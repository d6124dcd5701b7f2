import type { Kysely } from "kysely";
import type { OneOrMany } from "../policy-store.ts";
import type { Tables } from "../tables.ts";
import type { Session } from "../transact.ts";

/** SQLite takes 32 766 parameters in one statement, and a row has at most twenty. With long documents a statement stays bounded. */
const rowsAtOnce = 100;

/** The part of a `Table` that writing needs. */
interface WrittenTable<Entity, Row> {
  readonly name: keyof Tables;
  readonly key: readonly (keyof Row)[];
  rowFromRecord(record: Entity): Row;
}

/** Writes records, each in place of the one with its key. */
export async function putRecords<Entity, Row extends object>(
  session: Session,
  table: WrittenTable<Entity, Row>,
  records: OneOrMany<Entity>,
): Promise<void> {
  for (const rows of rowsInParts(table, records)) await putRows(session, table, rows);
}

/**
 * Rows of records in parts that one statement can write. PostgreSQL refuses to write a row twice in one statement: of records
 * with the same key, the last one counts.
 */
export function rowsInParts<Entity, Row extends object>(
  table: WrittenTable<Entity, Row>,
  records: OneOrMany<Entity>,
): readonly (readonly Row[])[] {
  const byKey = new Map<string, Row>();
  for (const record of [records].flat() as readonly Entity[]) {
    const row = table.rowFromRecord(record);
    byKey.set(JSON.stringify(table.key.map((column) => row[column])), row);
  }
  const rows = [...byKey.values()];
  const parts: Row[][] = [];
  for (let start = 0; start < rows.length; start += rowsAtOnce) parts.push(rows.slice(start, start + rowsAtOnce));
  return parts;
}

/** One part, in one statement. */
export async function putRows<Row extends object>(
  { tables, run }: Session,
  table: { readonly name: keyof Tables; readonly key: readonly (keyof Row)[] },
  rows: readonly Row[],
): Promise<void> {
  const key = table.key as readonly string[];
  const replaced = Object.keys(rows[0] ?? {}).filter((column) => !key.includes(column));
  // Kysely cannot follow a table that is a type parameter; this function's parameters already tie rows to tables.
  const untyped = tables as unknown as Kysely<{ [table: string]: { [column: string]: unknown } }>;
  await run(
    untyped
      .insertInto(table.name)
      .values(rows as readonly { [column: string]: unknown }[])
      .onConflict((conflict) =>
        conflict
          .columns(key)
          .doUpdateSet((set) => Object.fromEntries(replaced.map((column) => [column, set.ref(`excluded.${column}`)]))),
      ),
  );
}
