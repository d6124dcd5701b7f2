import { checkLength, checkStorable } from "./storable.ts";

/**
 * How a field is stored. Texts and numbers go into the column of that name as they are, with null for undefined. A flag is 0 or 1,
 * because SQLite has no booleans. Anything else is JSON.
 */
type Column<Value> = [Value] extends [boolean]
  ? { readonly flag: string }
  : [Value] extends [string | number | undefined]
    ? string
    : { readonly json: string };

/** A table, as a constant (`as const`) from which the types of its rows follow. */
export interface TableDescription<Entity> {
  readonly name: string;
  /** The columns of its primary key. */
  readonly key: readonly string[];
  /** Fields that an index holds whole, and whose length is therefore bounded. */
  readonly bounded: readonly (keyof Entity & string)[];
  /** Every field, and its column. */
  readonly fields: { readonly [Field in keyof Entity]-?: Column<Entity[Field]> };
  /** Columns that follow from the fields: they are written and searched, and never read back. */
  readonly derived?: { readonly [column: string]: (entity: Entity) => string | number | null };
}

type ColumnName<Described> = Described extends { readonly flag: infer Name } | { readonly json: infer Name }
  ? Name & string
  : Described & string;

type Stored<Value> = Value extends undefined
  ? null
  : Value extends boolean
    ? number
    : Value extends string | number
      ? Value
      : string;

/** The result of a query for records. */
export type ReadRow<Entity, Description extends TableDescription<Entity>> = {
  readonly [Field in keyof Entity as ColumnName<Description["fields"][Field]>]: Stored<Entity[Field]>;
};

/** A whole row, as both databases return it: whole numbers are numbers. */
export type Row<Entity, Description extends TableDescription<Entity>> = ReadRow<Entity, Description> &
  DerivedColumns<Description>;

type DerivedColumns<Description> = Description extends {
  readonly derived: infer Derived extends { readonly [column: string]: (entity: never) => unknown };
}
  ? { readonly [Name in keyof Derived]: ReturnType<Derived[Name]> }
  : unknown;

/** Refuses a key without its column, and a column for a field that the entity does not have. */
export interface Consistent<Entity, Description extends TableDescription<Entity>> {
  readonly key: readonly (keyof Row<Entity, Description>)[];
  readonly fields: { readonly [Field in keyof Description["fields"]]: Field extends keyof Entity ? unknown : never };
}

/** A described table: everything that queries need to read and write records. */
export interface Table<Entity, Description extends TableDescription<Entity> & Consistent<Entity, Description>> {
  readonly name: Description["name"];
  readonly key: readonly Description["key"][number][];
  /** The columns that are read, by name: a later schema may have more, which this program does not know. */
  readonly columns: readonly (keyof ReadRow<Entity, Description>)[];
  recordFromRow(this: void, row: ReadRow<Entity, Description>): Entity;
  /** Throws `UnstorableValue`. */
  rowFromRecord(this: void, record: Entity): Row<Entity, Description>;
}

export function describeTable<
  Entity extends object,
  Description extends TableDescription<Entity> & Consistent<Entity, Description>,
>(description: Description): Table<Entity, Description> {
  const fields = Object.entries<string | object>(description.fields).map(readField);
  const derived = Object.entries(description.derived ?? {});

  const recordFromRow = (row: Values): Values => {
    const record: Values = {};
    for (const { field, column, form } of fields) {
      const value = row[column];
      if (form === "plain") record[field] = value ?? undefined;
      else record[field] = form === "flag" ? value === 1 : JSON.parse(value as string);
    }
    return record;
  };

  const rowFromRecord = (record: Entity): Values => {
    const row: Values = {};
    for (const { field, column, form } of fields) {
      const value = (record as Values)[field];
      checkStorable(field, value);
      if (form === "plain") row[column] = value ?? null;
      else row[column] = form === "flag" ? Number(value) : JSON.stringify(value);
    }
    for (const field of description.bounded) checkLength(field, String(record[field]));
    for (const [column, derive] of derived) row[column] = derive(record);
    return row;
  };

  const { name, key } = description;
  const columns = fields.map(({ column }) => column);
  return { name, key, columns, recordFromRow, rowFromRecord } as unknown as Table<Entity, Description>;
}

type Values = { [name: string]: unknown };

interface DescribedField {
  readonly field: string;
  readonly column: string;
  readonly form: "plain" | "flag" | "json";
}

function readField([field, column]: readonly [string, string | object]): DescribedField {
  if (typeof column === "string") return { field, column, form: "plain" };
  const [[form, name]] = Object.entries(column) as [["flag" | "json", string]];
  return { field, column: name, form };
}
