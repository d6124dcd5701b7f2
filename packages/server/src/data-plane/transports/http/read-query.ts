import { type Problem, SluiceError } from "sluice";
import { type ReadOf, readShape, refine, type Shape, text } from "sluice/shape";

/** Parameters of a query by name. Each is read from its text. */
export type QueryShapes = Readonly<Record<string, Shape<unknown>>>;

export type ReadQuery<Query extends QueryShapes> = { readonly [Name in keyof Query]?: ReadOf<Query[Name]> };

/** Reads the query of a URL. Throws `invalid_request` with every wrong, unknown or repeated parameter. */
export function readQuery<Query extends QueryShapes>(shapes: Query, url: string): ReadQuery<Query> {
  const at = url.indexOf("?");
  const given = new URLSearchParams(at === -1 ? "" : url.slice(at + 1));
  const problems: Problem[] = [];
  const values: Record<string, unknown> = {};
  for (const name of new Set(given.keys())) {
    const shape = Object.hasOwn(shapes, name) ? shapes[name] : undefined;
    const [value, ...more] = given.getAll(name);
    if (shape === undefined) problems.push({ path: [name], message: unknown(Object.keys(shapes)) });
    else if (more.length > 0) problems.push({ path: [name], message: "must be given once" });
    else {
      const read = readShape(shape, value, [name]);
      if (read.ok) values[name] = read.value;
      else problems.push(...read.problems);
    }
  }
  if (problems.length === 0) return values as ReadQuery<Query>;
  const names = problems.map(({ path }) => path.join(".")).join(", ");
  throw new SluiceError("invalid_request", `there is something wrong with the query: ${names}`, problems);
}

function unknown(known: readonly string[]): string {
  return known.length === 0
    ? "is not a known parameter; there is none here"
    : `is not a known parameter; there ${known.length === 1 ? "is" : "are"} ${known.join(", ")}`;
}

/** A whole number, from a text of digits. */
export function wholeNumber({ min, max }: { readonly min: number; readonly max: number }): Shape<number> {
  const form = `a whole number from ${min} to ${max}`;
  const shape = refine(text({ min: 0, max: 64 }), (digits, reading) => {
    const value = /^-?\d{1,16}$/.test(digits) ? Number(digits) : Number.NaN;
    return value >= min && value <= max ? value : reading.problem(`must be ${form}, but is ${JSON.stringify(digits)}`);
  });
  return { ...shape, name: form, schema: { type: "integer", minimum: min, maximum: max } };
}
