import { describeValue, type Invalid, invalid, type Reading } from "./reading.ts";
import type { ReadOf, Shape } from "./shape.ts";

export interface SizeOptions {
  readonly min?: number;
  /** Absent: 10 000. */
  readonly max?: number;
}

const maxItems = 10_000;

/** A list with items of one shape. Unreadable items are left out, after their problems were noted. */
export function listOf<T>(item: Shape<T>, { min = 0, max = maxItems }: SizeOptions = {}): Shape<readonly T[]> {
  return {
    name: "a list",
    schema: { type: "array", items: item.schema, ...(min > 0 ? { minItems: min } : undefined), maxItems: max },
    read(value, reading) {
      if (!Array.isArray(value)) return reading.problem(`must be a list, but is ${describeValue(value)}`);
      const items: T[] = [];
      if (value.length < min || value.length > max)
        return reading.problem(`must have ${sizeName(min, max)}, but has ${value.length}`);
      for (let index = 0; index < value.length; index++) {
        const read = reading.within(index, item, value[index]);
        if (read !== invalid) items.push(read);
      }
      return items;
    },
  };
}

function sizeName(min: number, max: number): string {
  if (min === 0) return `at most ${max} entries`;
  return min === max ? `${min} entries` : `${min} to ${max} entries`;
}

/** A list, or a single item in place of a list of one. */
export function oneOrMany<T>(item: Shape<T>, size: SizeOptions = {}): Shape<readonly T[]> {
  const many = listOf(item, size);
  return {
    name: `${item.name}, or a list`,
    schema: { anyOf: [item.schema, many.schema] },
    read(value, reading) {
      if (Array.isArray(value)) return many.read(value, reading);
      const read = item.read(value, reading);
      return read === invalid ? invalid : [read];
    },
  };
}

interface TypedShapes {
  readonly text?: Shape<unknown>;
  readonly number?: Shape<unknown>;
  readonly boolean?: Shape<unknown>;
  readonly list?: Shape<unknown>;
  readonly object?: Shape<unknown>;
}

/** A union discriminated by the type of the value. */
export function byType<S extends TypedShapes>(shapes: S): Shape<ReadOf<S[keyof S]>> {
  const all = Object.values(shapes) as Shape<unknown>[];
  const name = all.map((shape) => shape.name).join(", or ");
  return {
    name,
    schema: { anyOf: all.map((shape) => shape.schema) },
    read(value: unknown, reading: Reading): ReadOf<S[keyof S]> | Invalid {
      const type = findType(value);
      const shape = type === undefined ? undefined : shapes[type];
      if (shape === undefined) return reading.problem(`must be ${name}, but is ${describeValue(value)}`);
      return shape.read(value, reading) as ReadOf<S[keyof S]> | Invalid;
    },
  };
}

function findType(value: unknown): keyof TypedShapes | undefined {
  if (Array.isArray(value)) return "list";
  switch (typeof value) {
    case "string":
      return "text";
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "object":
      return value === null ? undefined : "object";
    default:
      return undefined;
  }
}
