import type { ReactNode } from "react";
import { type Cell, renderCsv } from "../format/csv.ts";
import { Button } from "./button.tsx";
import { downloadText } from "./download.ts";
import { Menu, MenuItem } from "./menu.tsx";

interface ExportMenuProps<Row> {
  /** The file's name, without its ending. */
  readonly name: string;
  readonly rows: readonly Row[];
  /** Columns of the CSV, by title. JSON has the rows as they are. */
  readonly columns: Readonly<Record<string, (row: Row) => Cell>>;
}

export function ExportMenu<Row>({ name, rows, columns }: ExportMenuProps<Row>): ReactNode {
  const readers = Object.values(columns);
  const csv = () =>
    renderCsv(
      Object.keys(columns),
      rows.map((row) => readers.map((read) => read(row))),
    );
  return (
    <Menu
      trigger={
        <Button disabled={rows.length === 0} icon="download" small>
          Export
        </Button>
      }
    >
      <MenuItem onClick={() => downloadText(`${name}.csv`, "text/csv", csv())}>As CSV</MenuItem>
      <MenuItem onClick={() => downloadText(`${name}.json`, "application/json", JSON.stringify(rows, null, 2))}>
        As JSON
      </MenuItem>
    </Menu>
  );
}
