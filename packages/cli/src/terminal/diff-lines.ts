/** A line of a diff: ` ` the same, `-` only before, `+` only after, and then the text. */
export type DiffLine = string;

/** The lines of a diff, as the control plane sends it. */
export function splitDiff(text: string | undefined): readonly DiffLine[] {
  return text === undefined ? [] : text.split("\n").slice(0, -1);
}

const context = 2;

/** Only what changed, with a little around it; what is left out shows as `undefined`. */
export function withContext(lines: readonly DiffLine[]): readonly (DiffLine | undefined)[] {
  const isNear = (index: number): boolean =>
    lines.slice(Math.max(0, index - context), index + context + 1).some((line) => !line.startsWith(" "));
  const parts: (DiffLine | undefined)[] = [];
  for (const [index, line] of lines.entries()) {
    if (isNear(index)) parts.push(line);
    else if (parts.length === 0 || parts.at(-1) !== undefined) parts.push(undefined);
  }
  return parts;
}

/** What is only before or only after. */
export function changedLines(lines: readonly DiffLine[]): readonly DiffLine[] {
  return lines.filter((line) => !line.startsWith(" "));
}
