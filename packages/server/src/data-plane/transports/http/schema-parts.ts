import type { JsonSchema } from "sluice/shape";

export const number: JsonSchema = { type: "number" };
export const integer: JsonSchema = { type: "integer" };
export const text: JsonSchema = { type: "string" };
export const yesOrNo: JsonSchema = { type: "boolean" };
export const nullable = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, { type: "null" }] });
export const list = (items: JsonSchema): JsonSchema => ({ type: "array", items });

/** An object whose properties are all required, except for those named. */
export function object(properties: Readonly<Record<string, JsonSchema>>, ...optional: readonly string[]): JsonSchema {
  const required = Object.keys(properties).filter((key) => !optional.includes(key));
  return { type: "object", properties, ...(required.length > 0 && { required }) };
}
