/**
 * Small readers for data from outside: policy files, request bodies, settings. A shape turns `unknown` into a typed
 * value, notes every problem with its path, and carries the JSON Schema of what it accepts, so that a format, its
 * documentation and its validation are written once.
 */
import type { ErrorCode, Problem } from "../errors.ts";
import { describeValue, type Invalid, invalid, type Path, problemsError, Reading } from "./reading.ts";
import { suggest } from "./suggest.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Shape<T> {
  /** Describes a value of this shape in messages: `a text`, `a whole number from 1 to 16`. */
  readonly name: string;
  /** JSON Schema (2020-12) of what is accepted. */
  readonly schema: JsonSchema;
  /**
   * The value, or `invalid` if it cannot be read. A list or an object with a bad part is returned without that part, so
   * that its other parts can still be checked; only `reading.problems` says whether all is well.
   */
  read(value: unknown, reading: Reading): T | Invalid;
}

/** The type that a shape reads. */
export type ReadOf<S> = S extends Shape<infer T> ? T : never;

export type ReadResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Reads a value completely, or returns every problem with it. */
export function readShape<T>(shape: Shape<T>, value: unknown, path: Path = []): ReadResult<T> {
  const reading = new Reading(path);
  const result = shape.read(value, reading);
  if (result === invalid || reading.problems.length > 0) return { ok: false, problems: reading.problems };
  return { ok: true, value: result };
}

/** Reads a value completely, or throws an error with every problem. `what` names the document in its message. */
export function parseShape<T>(shape: Shape<T>, value: unknown, code: ErrorCode, what: string): T {
  const result = readShape(shape, value);
  if (result.ok) return result.value;
  throw problemsError(code, what, result.problems);
}

export interface TextOptions {
  /** Fewest characters. Absent: 1. */
  readonly min?: number;
  /** Most characters. Absent: 1024. */
  readonly max?: number;
  readonly pattern?: RegExp;
  /** What the pattern requires, completing `must be …`: `letters, digits or . _ -`. */
  readonly form?: string;
}

export function text(options: TextOptions = {}): Shape<string> {
  const { min = 1, max = 1024, pattern, form } = options;
  const length = min === 0 ? `at most ${max}` : `${min} to ${max}`;
  return {
    name: form ?? "a text",
    schema: {
      type: "string",
      minLength: min,
      maxLength: max,
      ...(pattern === undefined ? undefined : { pattern: pattern.source }),
    },
    read(value, reading) {
      if (typeof value === "number" || typeof value === "boolean")
        return reading.problem(`must be a text, but is the ${typeof value} ${value}; put it in quotes: "${value}"`);
      if (typeof value !== "string") return reading.problem(`must be a text, but is ${describeValue(value)}`);
      if (value.length < min || value.length > max)
        return reading.problem(`must have ${length} characters, but has ${value.length}`);
      if (pattern !== undefined && !pattern.test(value))
        return reading.problem(`must be ${form ?? `text like ${pattern.source}`}, but is ${describeValue(value)}`);
      return value;
    },
  };
}

export interface NumberOptions {
  readonly min?: number;
  readonly max?: number;
}

/** A finite number within bounds, both included. */
export function number(options: NumberOptions = {}): Shape<number> {
  return boundedNumber("a number", "number", Number.isFinite, options);
}

/** A whole number within bounds, both included. Without bounds, one that JavaScript holds exactly. */
export function integer(options: NumberOptions = {}): Shape<number> {
  return boundedNumber("a whole number", "integer", Number.isSafeInteger, options);
}

function boundedNumber(
  kind: string,
  type: string,
  isOfKind: (value: unknown) => boolean,
  { min, max }: NumberOptions,
): Shape<number> {
  const from = min === undefined ? "" : max === undefined ? ` of at least ${min}` : ` from ${min}`;
  const to = max === undefined ? "" : min === undefined ? ` of at most ${max}` : ` to ${max}`;
  const name = `${kind}${from}${to}`;
  return {
    name,
    schema: {
      type,
      ...(min === undefined ? undefined : { minimum: min }),
      ...(max === undefined ? undefined : { maximum: max }),
    },
    read(value, reading) {
      const within =
        isOfKind(value) && (min ?? -Infinity) <= (value as number) && (value as number) <= (max ?? Infinity);
      return within ? (value as number) : reading.problem(`must be ${name}, but is ${describeValue(value)}`);
    },
  };
}

export const boolean: Shape<boolean> = {
  name: "true or false",
  schema: { type: "boolean" },
  read(value, reading) {
    if (typeof value === "boolean") return value;
    return reading.problem(`must be true or false, but is ${describeValue(value)}`);
  },
};

/** One of a few words. */
export function choice<const T extends string>(words: readonly T[]): Shape<T> {
  const name = words.length === 1 ? JSON.stringify(words[0]) : `one of ${words.join(", ")}`;
  return {
    name,
    schema: { type: "string", enum: [...words] },
    read(value, reading) {
      const word = words.find((one) => one === value);
      if (word !== undefined) return word;
      const meant = typeof value === "string" ? suggest(value, words) : undefined;
      const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
      return reading.problem(`must be ${name}, but is ${describeValue(value)}${hint}`);
    },
  };
}

/** Reads further: checks the result of a shape, or turns it into something else. `raw` is the original value. */
export function refine<T, U>(
  shape: Shape<T>,
  change: (value: T, reading: Reading, raw: unknown) => U | Invalid,
  name: string = shape.name,
): Shape<U> {
  return {
    name,
    schema: shape.schema,
    read(value, reading) {
      const result = shape.read(value, reading);
      return result === invalid ? invalid : change(result, reading, value);
    },
  };
}

/** Documents the value in the schema; `annotations` are further keywords, such as `default` or `examples`. */
export function described<T>(shape: Shape<T>, description: string, annotations: JsonSchema = {}): Shape<T> {
  return { name: shape.name, schema: { ...shape.schema, description, ...annotations }, read: shape.read };
}
