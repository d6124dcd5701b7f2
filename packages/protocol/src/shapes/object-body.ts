import type { JsonSchema } from "sluice/shape";
import type { AnyShape, BodyOf, BodyShape, ViewOf } from "./body-shape.ts";

/** A field that may be absent. */
export interface OptionalField<Shape extends AnyShape> {
  readonly optional: Shape;
}

export type Fields = Readonly<Record<string, AnyShape | OptionalField<AnyShape>>>;

type OptionalKeys<F extends Fields> = {
  [Key in keyof F]: F[Key] extends OptionalField<AnyShape> ? Key : never;
}[keyof F];

type ShapeOf<Field> = Field extends OptionalField<infer Shape> ? Shape : Field;

/** `retry_after_ms` is `retryAfterMs` in a view. */
export type CamelCase<Name> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

type Flat<T> = { readonly [Key in keyof T]: T[Key] };

/** An object as it travels. */
export type ObjectBody<F extends Fields> = Flat<
  { readonly [Key in Exclude<keyof F, OptionalKeys<F>>]: BodyOf<ShapeOf<F[Key]>> } & {
    readonly [Key in OptionalKeys<F>]?: BodyOf<ShapeOf<F[Key]>> | undefined;
  }
>;

/**
 * The view that it is rendered from: every field under its name in camelCase. An optional one must be present, as
 * undefined.
 */
export type ObjectView<F extends Fields> = {
  readonly [Key in keyof F as CamelCase<Key>]:
    | ViewOf<ShapeOf<F[Key]>>
    | (F[Key] extends OptionalField<AnyShape> ? undefined : never);
};

/** A field that may be absent. */
export function optional<Shape extends AnyShape>(shape: Shape): OptionalField<Shape> {
  return { optional: shape };
}

/** An object with these fields, which travel in this order. */
export function objectOf<F extends Fields>(fields: F): BodyShape<ObjectView<F>, ObjectBody<F>> {
  const plan = Object.entries(fields).map(([key, field]) => ({ key, from: camelCase(key), ...splitField(field) }));
  return {
    schema: objectSchema(plan),
    render(view) {
      const body: Record<string, unknown> = {};
      for (const { key, from, shape } of plan) {
        const value = (view as Readonly<Record<string, unknown>>)[from];
        body[key] = value === undefined ? undefined : shape.render(value);
      }
      return body as ObjectBody<F>;
    },
  };
}

function splitField(field: AnyShape | OptionalField<AnyShape>): { shape: AnyShape; required: boolean } {
  return "optional" in field ? { shape: field.optional, required: false } : { shape: field, required: true };
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function objectSchema(
  plan: readonly { readonly key: string; readonly shape: AnyShape; readonly required: boolean }[],
): JsonSchema {
  const properties = Object.fromEntries(plan.map(({ key, shape }) => [key, shape.schema]));
  const required = plan.filter((field) => field.required).map(({ key }) => key);
  return { type: "object", properties, ...(required.length > 0 && { required }) };
}
