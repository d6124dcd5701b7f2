import type { OneOrMany } from "./policy-store.ts";

/** SQLite takes 32 766 parameters in one statement, and a row has fifteen at most. With long documents a statement stays bounded. */
const rowsAtOnce = 100;

/**
 * Rows of records in parts that one statement can write. PostgreSQL refuses to write a row twice in one statement: of those
 * with the same key, what is said last holds.
 */
export function inParts<Record, Row extends object>(
  records: OneOrMany<Record>,
  rowOf: (record: Record) => Row,
  key: readonly (keyof Row)[],
): readonly (readonly Row[])[] {
  const list: readonly Record[] = isList(records) ? records : [records];
  const byKey = new Map<string, Row>();
  for (const record of list) {
    const row = rowOf(record);
    byKey.set(JSON.stringify(key.map((column) => row[column])), row);
  }
  const rows = [...byKey.values()];
  const parts: Row[][] = [];
  for (let start = 0; start < rows.length; start += rowsAtOnce) parts.push(rows.slice(start, start + rowsAtOnce));
  return parts;
}

function isList<T>(records: OneOrMany<T>): records is readonly T[] {
  return Array.isArray(records);
}
