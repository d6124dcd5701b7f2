/** Where the value of a dimension is found in a line. */
export type FieldSource =
  /** A request header, where the format logs it. */
  | { readonly kind: "header"; readonly name: string }
  /** A parameter of the request's query. */
  | { readonly kind: "query"; readonly name: string }
  /** A place in a line of JSON. */
  | { readonly kind: "json"; readonly path: readonly string[] }
  /** A field of a line of text, counted from 1; what is in quotes or brackets is one field. */
  | { readonly kind: "field"; readonly number: number };

/** What lines are read for: dimensions by name, and `time`, `status` and `cost`, which are none. */
export type FieldMap = ReadonlyMap<string, FieldSource>;

const form = "name=header:NAME, name=query:NAME, name=json:$.PATH or name=field:NUMBER";

/** Reads `tenant=header:x-tenant` and its like. Throws a `RangeError` that says what is wrong. */
export function parseFieldMap(entries: readonly string[]): FieldMap {
  const map = new Map<string, FieldSource>();
  for (const entry of entries) {
    const [, name, kind, where] = /^([A-Za-z_][\w.-]*)=(\w+):(.+)$/s.exec(entry) ?? [];
    if (name === undefined || kind === undefined || where === undefined)
      throw new RangeError(`${JSON.stringify(entry)} should be ${form}`);
    if (map.has(name)) throw new RangeError(`${name} is mapped twice`);
    map.set(name, parseSource(kind, where, entry));
  }
  return map;
}

function parseSource(kind: string, where: string, entry: string): FieldSource {
  switch (kind) {
    case "header":
      return { kind, name: where.toLowerCase() };
    case "query":
      return { kind, name: where };
    case "json":
      return { kind, path: parseJsonPath(where) };
    case "field": {
      const number = Number(where);
      if (Number.isInteger(number) && number >= 1) return { kind, number };
      throw new RangeError(`${JSON.stringify(entry)}: a field is a number from 1`);
    }
    default:
      throw new RangeError(`${JSON.stringify(entry)} should be ${form}`);
  }
}

/** `$.user`, `$.request.headers['X-Tenant'][0]`; the `$.` may be left out. */
export function parseJsonPath(text: string): readonly string[] {
  const path: string[] = [];
  const part = /\.?([^.[\]]+)|\[(?:(\d+)|'([^']*)'|"([^"]*)")\]/y;
  part.lastIndex = text.startsWith("$") ? 1 : 0;
  while (part.lastIndex < text.length) {
    const found = part.exec(text);
    if (found === null) throw new RangeError(`${JSON.stringify(text)} is not a path such as $.request.user`);
    path.push(found[1] ?? found[2] ?? found[3] ?? found[4] ?? "");
  }
  if (path.length === 0) throw new RangeError(`${JSON.stringify(text)} is not a path such as $.request.user`);
  return path;
}

/** What is at a path of a parsed line; undefined if there is nothing. */
export function findByPath(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const name of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return found;
}
