/** The fields of a line of text: words, and what is in quotes or brackets, without them. `\"` does not end a quote. */
export function splitFields(line: string): readonly string[] {
  const fields: string[] = [];
  const { length } = line;
  let at = 0;
  while (at < length) {
    const first = line[at];
    if (first === " " || first === "\t") {
      at += 1;
      continue;
    }
    const close = first === '"' ? '"' : first === "[" ? "]" : undefined;
    let end = close === undefined ? at : at + 1;
    if (close === undefined) while (end < length && line[end] !== " " && line[end] !== "\t") end += 1;
    else while (end < length && line[end] !== close) end += close === '"' && line[end] === "\\" ? 2 : 1;
    fields.push(line.slice(close === undefined ? at : at + 1, end));
    at = end + 1;
  }
  return fields;
}
