export type Cell = string | number | boolean | undefined;

/** A spreadsheet takes what begins like this for a formula, and runs it. */
const formula = /^[\s]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;

/** By RFC 4180, with a line of titles. */
export function renderCsv(titles: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [titles, ...rows].map((row) => `${row.map(renderCell).join(",")}\r\n`).join("");
}

function renderCell(cell: Cell): string {
  if (cell === undefined) return "";
  if (typeof cell !== "string") return String(cell);
  const harmless = formula.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]|^\s|\s$/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
