import { expect, it } from "vitest";
import { wantsCsv } from "./wants-csv.ts";

it.each([
  [undefined, false],
  ["", false],
  ["*/*", false],
  ["application/json", false],
  ["text/csv", true],
  ["Text/CSV; charset=utf-8", true],
  ["text/csv, */*", true],
  ["text/*", true],
  ["text/csv, application/json", false],
  ["application/json;q=0.5, text/csv", true],
  ["application/json, text/csv;q=0.9", false],
  ["text/csv;q=0", false],
  ["text/html, application/xhtml+xml, */*;q=0.8", false],
])("reads Accept: %s as CSV %s", (accept, expected) => {
  expect(wantsCsv(undefined, { accept })).toBe(expected);
  expect(wantsCsv("csv", { accept })).toBe(true);
  expect(wantsCsv("json", { accept })).toBe(false);
});
