/** Returns whether a text fits. */
export type TextPattern = (text: string) => boolean;

/**
 * A pattern in which each `*` stands for any text, even none. The pieces between stars are searched in order, each as
 * early as possible. That is enough to know whether all of them fit, so the search never backtracks.
 */
export function compileTextPattern(pattern: string): TextPattern {
  const pieces = pattern.split("*");
  const start = pieces[0]!;
  if (pieces.length === 1) return (text) => text === pattern;
  const end = pieces.at(-1)!;
  const between = pieces.slice(1, -1).filter((piece) => piece !== "");
  return (text) => {
    if (text.length < start.length + end.length || !text.startsWith(start) || !text.endsWith(end)) return false;
    let from = start.length;
    for (const piece of between) {
      const at = text.indexOf(piece, from);
      if (at < 0) return false;
      from = at + piece.length;
    }
    return from + end.length <= text.length;
  };
}
