import { describeValue, type Invalid, invalid, type Reading } from "./reading.ts";
import type { JsonSchema, ReadOf, Shape } from "./shape.ts";
import { suggest } from "./suggest.ts";

export type Fields = Readonly<Record<string, Shape<unknown>>>;
export type NoFields = Readonly<Record<never, never>>;

export type ObjectOf<Required extends Fields, Optional extends Fields> = {
  readonly [K in keyof Required]: ReadOf<Required[K]>;
} & { readonly [K in keyof Optional]?: ReadOf<Optional[K]> };

/** An object with known keys. An unknown key is a problem, reported with the key that was probably meant. */
export function objectOf<R extends Fields, O extends Fields = NoFields>(
  required: R,
  optional: O = {} as O,
): Shape<ObjectOf<R, O>> {
  const fields: Fields = { ...required, ...optional };
  const known = Object.keys(fields);
  const plan = fieldPlan(required, fields);
  return {
    name: "an object",
    schema: { ...objectSchema(required, fields), additionalProperties: false },
    read(value, reading) {
      if (!isPlainObject(value)) return reading.problem(`must be an object, but is ${describeValue(value)}`);
      const meant = new Set<string>();
      for (const key of Object.keys(value)) {
        if (reading.isFull) break;
        if (Object.hasOwn(fields, key) || value[key] === undefined) continue;
        const suggestion = suggest(key, known);
        if (suggestion !== undefined) meant.add(suggestion);
        reading.keyProblem(key, unknownKey(suggestion, known));
      }
      return readFields(value, reading, plan, meant) as ObjectOf<R, O> | Invalid;
    },
  };
}

export interface OpenObject<Known, V> {
  readonly known: Known;
  readonly others: Readonly<Record<string, V>>;
}

/** An object with some known, optional keys, and others that the writer chooses. */
export function openObjectOf<O extends Fields, V>(
  optional: O,
  others: { readonly key: Shape<string>; readonly value: Shape<V>; readonly max: number },
): Shape<OpenObject<ObjectOf<NoFields, O>, V>> {
  const plan = fieldPlan({}, optional);
  const rest = mapOf(others.key, others.value, { max: others.max });
  return {
    name: "an object",
    schema: { ...objectSchema({}, optional), additionalProperties: others.value.schema },
    read(value, reading) {
      if (!isPlainObject(value)) return reading.problem(`must be an object, but is ${describeValue(value)}`);
      const known = readFields(value, reading, plan, new Set()) as ObjectOf<NoFields, O> | Invalid;
      const unknown = Object.entries(value).filter(([key, one]) => !Object.hasOwn(optional, key) && one !== undefined);
      const read = rest.read(Object.fromEntries(unknown), reading);
      return known === invalid || read === invalid ? invalid : { known, others: read };
    },
  };
}

/**
 * An object whose keys the writer chooses. The result has no prototype, so that looking up a missing name finds
 * nothing, whatever the name.
 */
export function mapOf<V>(
  key: Shape<string>,
  value: Shape<V>,
  { max = 1_000 }: { readonly max?: number } = {},
): Shape<Readonly<Record<string, V>>> {
  return {
    name: "an object",
    schema: {
      type: "object",
      propertyNames: key.schema,
      additionalProperties: value.schema,
      maxProperties: max,
    },
    read(given, reading) {
      if (!isPlainObject(given)) return reading.problem(`must be an object, but is ${describeValue(given)}`);
      const keys = Object.keys(given);
      if (keys.length > max) return reading.problem(`must have at most ${max} keys, but has ${keys.length}`);
      const map: Record<string, V> = Object.create(null);
      for (const written of keys) {
        if (written === "__proto__") {
          reading.keyProblem(written, "is not allowed as a name");
          continue;
        }
        const name = reading.withinKey(written, key);
        const read = reading.within(written, value, given[written]);
        if (name === invalid || read === invalid) continue;
        if (Object.hasOwn(map, name)) reading.keyProblem(written, `is the same as another key, ${name}`);
        map[name] = read;
      }
      return map;
    },
  };
}

function objectSchema(required: Fields, fields: Fields): JsonSchema {
  const properties = Object.fromEntries(Object.entries(fields).map(([key, shape]) => [key, shape.schema]));
  const names = Object.keys(required);
  return { type: "object", properties, ...(names.length > 0 ? { required: names } : undefined) };
}

interface PlannedField {
  readonly key: string;
  readonly shape: Shape<unknown>;
  readonly required: boolean;
}

function fieldPlan(required: Fields, fields: Fields): readonly PlannedField[] {
  return Object.entries(fields).map(([key, shape]) => ({ key, shape, required: Object.hasOwn(required, key) }));
}

function readFields(
  value: Readonly<Record<string, unknown>>,
  reading: Reading,
  plan: readonly PlannedField[],
  meant: ReadonlySet<string>,
): Readonly<Record<string, unknown>> | Invalid {
  const result: Record<string, unknown> = {};
  let complete = true;
  for (const { key, shape, required } of plan) {
    const part = Object.hasOwn(value, key) ? value[key] : undefined;
    if (part !== undefined) {
      const read = reading.within(key, shape, part);
      if (read !== invalid) result[key] = read;
      else if (required) complete = false;
    } else if (required) {
      complete = false;
      // A misspelt key was reported with this one as the suggestion; calling it missing too would be noise.
      if (!meant.has(key)) reading.problem(`is missing; it must be ${shape.name}`, key);
    }
  }
  return complete ? result : invalid;
}

function unknownKey(suggestion: string | undefined, known: readonly string[]): string {
  if (suggestion !== undefined) return `is not a known key; did you mean ${suggestion}?`;
  return `is not a known key; known here: ${known.filter((key) => !key.startsWith("$")).join(", ")}`;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
