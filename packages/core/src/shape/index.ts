/**
 * `sluice/shape`: one description of a format gives its type, a reader that reports every problem with its path, and its
 * JSON Schema.
 */
export { byType, listOf, oneOrMany } from "./list-shapes.ts";
export { mapOf, objectOf, openObjectOf } from "./object-shapes.ts";
export {
  boolean,
  choice,
  described,
  integer,
  type JsonSchema,
  number,
  parseShape,
  type ReadOf,
  type ReadResult,
  readShape,
  refine,
  type Shape,
  text,
} from "./shape.ts";
