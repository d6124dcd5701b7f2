/** Header fields in the forms that callers have them. */
export type HeaderSource =
  /** A `Headers`, a `Map`, or anything else that iterates over its fields like this. */
  | { forEach(callback: (value: string, name: string) => void): void }
  /** Values by name, as `node:http` and undici give them. */
  | Readonly<Record<string, unknown>>
  /** Names and values in turn, as `rawHeaders` has them, or in pairs. */
  | readonly (string | Uint8Array | readonly (string | Uint8Array)[])[];

/** Values by name in lower case. A map, so that names like `__proto__` have no meaning. */
export type HeaderFields = ReadonlyMap<string, readonly string[]>;

/** Longer values contain nothing that a limit needs. */
const maxNameLength = 96;
const maxValueLength = 4096;
const maxFields = 64;

/** The most important fields; read however many others there are. */
const alwaysRead: ReadonlySet<string> = new Set(["date", "retry-after", "ratelimit", "ratelimit-policy"]);

const relevant = /^date$|retry-after|rate-?limit/;

/** The fields that may describe limits, in bounded number and length. Never throws, whatever its input. */
export function collectFields(source: unknown): HeaderFields {
  const fields = new Map<string, string[]>();
  const add = (name: unknown, value: unknown): void => {
    if (Array.isArray(value)) {
      for (const one of value.slice(0, maxFields)) add(name, one);
      return;
    }
    const field = textFromValue(name, maxNameLength)?.toLowerCase();
    if (field === undefined || !relevant.test(field)) return;
    const text = textFromValue(value, maxValueLength);
    const known = fields.get(field);
    if (known === undefined) {
      if (fields.size < maxFields || alwaysRead.has(field)) fields.set(field, text === undefined ? [] : [text]);
    } else if (text !== undefined && known.length < maxFields) known.push(text);
  };
  try {
    visitFields(source, add);
  } catch {
    // A getter or an iterator threw: the fields read until then count.
  }
  return fields;
}

function visitFields(source: unknown, add: (name: unknown, value: unknown) => void): void {
  if (Array.isArray(source) && Array.isArray(source[0])) {
    for (const pair of source) add(pair[0], pair[1]);
  } else if (Array.isArray(source)) {
    for (let index = 0; index + 1 < source.length; index += 2) add(source[index], source[index + 1]);
  } else if (typeof source === "object" && source !== null) {
    const { forEach } = source as { readonly forEach?: unknown };
    if (typeof forEach === "function") forEach.call(source, (value: unknown, name: unknown) => add(name, value));
    else for (const name of Object.keys(source)) add(name, (source as Readonly<Record<string, unknown>>)[name]);
  }
}

function textFromValue(value: unknown, maxLength: number): string | undefined {
  if (typeof value === "string") return value.length <= maxLength ? value : undefined;
  if (typeof value === "number") return String(value);
  if (!(value instanceof Uint8Array) || value.length > maxLength) return undefined;
  return String.fromCharCode(...value);
}
