/**
 * Descriptions of answers. A body shape holds the type of a body as it travels, its JSON Schema, and its rendering from
 * a view of the server's, so that all three are written once: if you rename a field, the compiler shows every place
 * that renders or reads it.
 *
 * Answers differ from requests, which `sluice` has shapes for: they are written and not parsed, without bounds, and
 * clients ignore unknown fields.
 */
import type { JsonSchema } from "sluice/shape";

export interface BodyShape<View, Body> {
  /** JSON Schema (2020-12) of the body. */
  readonly schema: JsonSchema;
  /** Renders the body of a view. Undefined fields are left out of the JSON. */
  render(view: View): Body;
}

// biome-ignore lint/suspicious/noExplicitAny: a shape of any view and body, to infer both from.
export type AnyShape = BodyShape<any, any>;

/** The type of a body, as it travels. */
export type BodyOf<Shape> = Shape extends BodyShape<never, infer Body> ? Body : never;

/** The view that a body is rendered from. */
export type ViewOf<Shape> = Shape extends BodyShape<infer View, unknown> ? View : never;

/** A value that travels unchanged. */
export function plain<T>(schema: JsonSchema): BodyShape<T, T> {
  return { schema, render: (view) => view };
}

export const text: BodyShape<string, string> = plain({ type: "string" });
export const number: BodyShape<number, number> = plain({ type: "number" });
export const integer: BodyShape<number, number> = plain({ type: "integer" });
export const boolean: BodyShape<boolean, boolean> = plain({ type: "boolean" });
export const anything: BodyShape<unknown, unknown> = plain({});

export type JsonObject = Readonly<Record<string, unknown>>;
/** An object whose keys are data, not fields. */
export const jsonObject: BodyShape<JsonObject, JsonObject> = plain({ type: "object" });

/** One of a few words. */
export function choice<const Word extends string>(words: readonly Word[]): BodyShape<Word, Word> {
  return plain({ enum: [...words] });
}

/** A constant. */
export function constant<const Value extends string | boolean>(value: Value): BodyShape<Value, Value> {
  return plain({ const: value });
}

export function listOf<View, Body>(item: BodyShape<View, Body>): BodyShape<readonly View[], readonly Body[]> {
  return {
    schema: { type: "array", items: item.schema },
    render: (views) => views.map((view) => item.render(view)),
  };
}

/** An object whose keys are data, with values of one shape. */
export function mapOf<T>(value: BodyShape<T, T>): BodyShape<Readonly<Record<string, T>>, Readonly<Record<string, T>>> {
  return plain({ type: "object", additionalProperties: value.schema });
}

/** A union by the word in `kind`; kinds may share a shape. */
export function byKind<Shapes extends Readonly<Record<string, AnyShape>>>(
  shapes: Shapes,
): BodyShape<ViewOf<Shapes[keyof Shapes]> & { readonly kind: keyof Shapes }, BodyOf<Shapes[keyof Shapes]>> {
  return {
    schema: { anyOf: [...new Set(Object.values(shapes))].map(({ schema }) => schema) },
    render: (view) => shapes[view.kind]!.render(view),
  };
}

/** One of several bodies, already rendered. */
export function anyOf<const Shapes extends readonly AnyShape[]>(
  ...shapes: Shapes
): BodyShape<BodyOf<Shapes[number]>, BodyOf<Shapes[number]>> {
  return plain({ anyOf: shapes.map(({ schema }) => schema) });
}

/** Describes the value in the schema; `annotations` are further keywords, such as `examples`. */
export function described<View, Body>(
  shape: BodyShape<View, Body>,
  description: string,
  annotations: JsonSchema = {},
): BodyShape<View, Body> {
  return { ...shape, schema: { ...shape.schema, description, ...annotations } };
}

/** The same body, from another view. */
export function fromView<Other, View, Body>(
  shape: BodyShape<View, Body>,
  convert: (other: Other) => View,
): BodyShape<Other, Body> {
  return { ...shape, render: (other) => shape.render(convert(other)) };
}

/** The same body, already rendered. */
export function asIs<Body>(shape: BodyShape<never, Body>): BodyShape<Body, Body> {
  return plain(shape.schema);
}

/** A body with every field present, including optional ones. */
export type Complete<Body> = { readonly [Key in keyof Required<Body>]: Body[Key] };

/** The same body, rendered by hand: if that must be fast, or a field depends on others. */
export function renderedBy<View, Body>(
  shape: BodyShape<never, Body>,
  render: (view: View) => Complete<Body>,
): BodyShape<View, Body> {
  return { schema: shape.schema, render: render as (view: View) => Body };
}

/** Epoch milliseconds. */
export const epochMs: BodyShape<number, number> = described(integer, "Epoch milliseconds.");

/** JSON has no infinity, so a time that never comes is left out. */
export function finiteOrNone(value: number | undefined): number | undefined {
  return value !== undefined && Number.isFinite(value) ? value : undefined;
}

/** A number that is left out if it is infinite. */
export function finite(shape: BodyShape<number, number>): BodyShape<number, number | undefined> {
  return { ...shape, render: finiteOrNone };
}
