import { printable } from "sluice/internal";

export interface Column {
  readonly title: string;
  /** Absent: left. */
  readonly align?: "left" | "right";
  /** Whether it gives way where a line is too long. */
  readonly flexible?: boolean;
  /** What a whole row is shown in, by the text of this column. */
  readonly paint?: (text: string, shown: string) => string;
}

const gap = "  ";
const leastFlexible = 8;

/**
 * Rows in columns as wide as their longest text. Where `width` is known, flexible columns are cut off to fit into it; what
 * does not fit even so is left whole. Texts lose line breaks, and what terminals obey is escaped.
 */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number = Number.POSITIVE_INFINITY,
): string {
  const texts = rows.map((row) => columns.map((_column, index) => renderCell(row[index] ?? "")));
  const widths = fit(columns, findWidths(columns, texts), width);
  const head = renderRow(
    columns,
    columns.map(({ title }) => title),
    widths,
  );
  const body = texts.map((row) => {
    const line = renderRow(columns, row, widths);
    return columns.reduce((shown, { paint }, index) => paint?.(row[index] ?? "", shown) ?? shown, line);
  });
  return `${[head, ...body].join("\n")}\n`;
}

/** `name  text`, one a line. */
export function renderFields(fields: readonly (readonly [name: string, text: string])[]): string {
  const width = Math.max(0, ...fields.map(([name]) => countCharacters(name)));
  return `${fields.map(([name, text]) => `${name.padEnd(width)}${gap}${renderCell(text)}`.trimEnd()).join("\n")}\n`;
}

/** On one line, and without the space that others may have put in for their own reasons. */
function renderCell(text: string): string {
  return printable(text).replace(/ +/g, " ").trim();
}

function findWidths(columns: readonly Column[], rows: readonly (readonly string[])[]): number[] {
  return columns.map(({ title }, index) =>
    rows.reduce((most, row) => Math.max(most, countCharacters(row[index] ?? "")), countCharacters(title)),
  );
}

/** Takes from the widest flexible column, one by one, what is too much. */
function fit(columns: readonly Column[], natural: readonly number[], width: number): readonly number[] {
  const widths = [...natural];
  let beyond = widths.reduce((sum, one) => sum + one, gap.length * (widths.length - 1)) - width;
  while (beyond > 0) {
    let widest = -1;
    for (const [index, { flexible }] of columns.entries())
      if (flexible === true && (widths[index] ?? 0) > Math.max(leastFlexible, widths[widest] ?? 0)) widest = index;
    if (widest === -1) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    beyond -= 1;
  }
  return widths;
}

function renderRow(columns: readonly Column[], texts: readonly string[], widths: readonly number[]): string {
  return columns
    .map(({ align }, index) => {
      const width = widths[index] ?? 0;
      const text = cut(texts[index] ?? "", width);
      const space = " ".repeat(Math.max(0, width - countCharacters(text)));
      return align === "right" ? space + text : text + space;
    })
    .join(gap)
    .trimEnd();
}

function cut(text: string, width: number): string {
  if (countCharacters(text) <= width) return text;
  let kept = "";
  for (const { segment } of graphemes.segment(text)) {
    if (countCharacters(kept) + countCharacters(segment) > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Chinese, Japanese and Korean characters and most emoji take two columns. */
const twoColumns =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}])/u;

/** How many columns of a terminal a text takes. */
function countCharacters(text: string): number {
  // Almost all texts are ASCII, and need no segmenting.
  if (/^[ -~]*$/.test(text)) return text.length;
  return [...graphemes.segment(text)].reduce((sum, { segment }) => sum + (twoColumns.test(segment) ? 2 : 1), 0);
}
