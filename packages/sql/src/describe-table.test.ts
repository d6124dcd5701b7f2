import { describe, expect, it } from "vitest";
import { describeTable, type Row, type Table } from "./describe-table.ts";
import { UnstorableValue } from "./errors.ts";

interface Parcel {
  readonly id: string;
  readonly sentMs: number | undefined;
  readonly fragile: boolean;
  readonly contents: readonly { readonly name: string }[];
}

const parcelTable = {
  name: "parcels",
  key: ["id"],
  bounded: ["id"],
  fields: { id: "id", sentMs: "sent_ms", fragile: { flag: "fragile" }, contents: { json: "contents" } },
  derived: { initial: ({ id }: Parcel): string => id.slice(0, 1) },
} as const;
const parcels: Table<Parcel, typeof parcelTable> = describeTable(parcelTable);

const parcel: Parcel = { id: "a1", sentMs: 5, fragile: true, contents: [{ name: "cup" }] };
const row: Row<Parcel, typeof parcelTable> = {
  id: "a1",
  sent_ms: 5,
  fragile: 1,
  contents: '[{"name":"cup"}]',
  initial: "a",
};

describe("a described table", () => {
  it("writes flags as 0 and 1, lists as JSON, absence as null, and derived columns", () => {
    expect(parcels.rowFromRecord(parcel)).toEqual(row);
    const sparse = { ...parcel, sentMs: undefined, fragile: false, contents: [] };
    expect(parcels.rowFromRecord(sparse)).toEqual({ ...row, sent_ms: null, fragile: 0, contents: "[]" });
  });

  it("reads the same record back, from the columns that it names and no others", () => {
    expect(parcels.columns).toEqual(["id", "sent_ms", "fragile", "contents"]);
    expect(parcels.recordFromRow(row)).toStrictEqual(parcel);
    const sparse = { ...parcel, sentMs: undefined, fragile: false };
    expect(parcels.recordFromRow({ ...row, sent_ms: null, fragile: 0 })).toStrictEqual(sparse);
    expect(parcels.recordFromRow({ ...row, added_by_a_later_version: 1 } as typeof row)).toStrictEqual(parcel);
  });

  it("names the field of a value that cannot be stored", () => {
    expect(() => parcels.rowFromRecord({ ...parcel, sentMs: 1.5 })).toThrow(UnstorableValue);
    expect(() => parcels.rowFromRecord({ ...parcel, id: "x".repeat(257) })).toThrow(/^id has more than 256 bytes/);
  });
});

it("does not compile if description and record disagree", () => {
  const { id: _id, ...withoutId } = parcelTable.fields;
  const missing = { ...parcelTable, fields: withoutId };
  // @ts-expect-error a field of the record has no column
  describeTable<Parcel, typeof missing>(missing);

  const renamed = { ...parcelTable, fields: { ...parcelTable.fields, weight: "weight" } };
  // @ts-expect-error a column is for a field that the record does not have
  describeTable<Parcel, typeof renamed>(renamed);

  const flagAsText = { ...parcelTable, fields: { ...parcelTable.fields, fragile: "fragile" } };
  // @ts-expect-error a flag is stored as a text
  describeTable<Parcel, typeof flagAsText>(flagAsText);

  const listAsText = { ...parcelTable, fields: { ...parcelTable.fields, contents: "contents" } };
  // @ts-expect-error a list is stored as a text
  describeTable<Parcel, typeof listAsText>(listAsText);

  const keyless = { ...parcelTable, key: ["number"] } as const;
  // @ts-expect-error the key is a column that does not exist
  describeTable<Parcel, typeof keyless>(keyless);

  // @ts-expect-error a column of this name is read, and there is none
  const read = (found: Row<Parcel, typeof parcelTable>): unknown => found.sentMs;
  expect(read(row)).toBeUndefined();
});
