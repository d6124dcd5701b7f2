import { readFileSync, writeFileSync } from "node:fs";

const page = new URL("../../docs/benchmarks.md", import.meta.url);

/** Puts what a suite measured into its section of docs/benchmarks.md. */
export function writeSection(suite: string, text: string): void {
  writeFileSync(page, replaceSection(readFileSync(page, "utf8"), suite, text));
  console.log(`wrote the section "${suite}" of docs/benchmarks.md`);
}

/** The page with other text between the two comments that mark the suite's section. */
export function replaceSection(whole: string, suite: string, text: string): string {
  const [from, to] = [`<!-- written by npm run bench -- ${suite} --write -->\n`, `<!-- end of ${suite} -->\n`];
  const start = whole.indexOf(from);
  const end = whole.indexOf(to, start);
  if (start === -1 || end === -1) throw new Error(`docs/benchmarks.md has no section for "${suite}"`);
  return `${whole.slice(0, start + from.length)}\n${text.trim()}\n\n${whole.slice(end)}`;
}

/** A table in Markdown. Columns of numbers are aligned at the right. */
export function renderTable(heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const marks = heads.map((_, i) =>
    rows.some((row) => typeof row[i] === "string" && i > 0 && !isNumber(row[i])) || i === 0 ? "---" : "--:",
  );
  const line = (cells: readonly (string | number)[]): string => `| ${cells.map(String).join(" | ")} |`;
  return [line(heads), `|${marks.join("|")}|`, ...rows.map(line)].join("\n");
}

function isNumber(cell: string | number | undefined): boolean {
  return typeof cell === "number" || /^[\d –.%×]*$/.test(cell ?? "");
}

/** `12 345` */
export function renderCount(value: number): string {
  return `${Math.round(value)}`.replaceAll(/\B(?=(\d{3})+$)/g, " ");
}
