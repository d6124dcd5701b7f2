/** Names of promises by file: sorted lines. */
export type Promises = Readonly<Record<string, readonly string[]>>;

/**
 * What was promised and is no longer so, one line each. Whatever is new breaks nothing, unless it is something that a client must
 * now send to a route that existed before, or must now write.
 */
export function findBrokenPromises(promised: Promises, current: Promises): readonly string[] {
  return Object.entries(promised).flatMap(([file, lines]) => {
    const now = current[file] ?? [];
    return [
      ...missing(lines.filter(isKept), now).map((line) => `${file}: no longer “${line}”`),
      ...missing(
        now.filter((line) => !isKept(line) && existed(line, lines)),
        lines,
      ).map((line) => `${file}: now ${line}`),
    ];
  });
}

/** `needs` lines may vanish, and others may not. */
function isKept(line: string): boolean {
  return !line.startsWith("needs ");
}

/** Whether what a field is needed by was promised. A field that is needed in a new object, or by a new route, breaks nothing. */
function existed(needs: string, promised: readonly string[]): boolean {
  const place = needs.slice("needs ".length).replace(/( (path|query|header) [^ ]+|\.[^.]*)$/, "");
  if (place === "") return true;
  return promised.some((line) => line === place || line.startsWith(`takes ${place}:`));
}

function missing(wanted: readonly string[], present: readonly string[]): readonly string[] {
  const known = new Set(present);
  return wanted.filter((line) => !known.has(line));
}
