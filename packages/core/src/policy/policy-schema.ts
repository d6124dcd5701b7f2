import { limitShape } from "./limit-shape.ts";
import { windowShape } from "./parse-window.ts";
import { policyShape } from "./policy-shape.ts";
import { documentShape } from "./read-policy-document.ts";
import { subjectShape } from "./subject-shape.ts";

/** Schemas that occur in many places are written once, under a name. */
const named = new Map<unknown, string>([
  [windowShape.schema, "window"],
  [limitShape.schema, "limit"],
  [policyShape.schema, "policy"],
  [subjectShape.schema, "subject"],
]);

/** JSON Schema (2020-12) of a policy file, for editors; made from the shapes that read policy files. */
export function policyFileSchema(): Record<string, unknown> {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Sluice policies",
    description: "Rate limit policies in Sluice's own format.",
    ...(withReferences(documentShape.schema, documentShape.schema) as object),
    $defs: Object.fromEntries([...named].map(([schema, name]) => [name, withReferences(schema, schema)])),
  };
}

/** A copy in which named schemas are references, except for the one being defined. */
function withReferences(part: unknown, defined: unknown): unknown {
  const name = part === defined ? undefined : named.get(part);
  if (name !== undefined) return { $ref: `#/$defs/${name}` };
  if (Array.isArray(part)) return part.map((item) => withReferences(item, defined));
  if (typeof part !== "object" || part === null) return part;
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, withReferences(value, defined)]));
}
