import { type BodyOf, boolean, epochMs, integer, jsonObject, listOf, text } from "../shapes/body-shape.ts";
import { objectOf } from "../shapes/object-body.ts";

/** A server process, and the generation that it decides by. */
export const node = objectOf({
  id: text,
  name: text,
  version: text,
  started_ms: epochMs,
  seen_ms: epochMs,
  alive: boolean,
  generation: integer,
  applied_ms: epochMs,
  current: boolean,
  details: jsonObject,
});
export type NodeBody = BodyOf<typeof node>;

/** All nodes, and the newest generation. */
export const nodes = objectOf({ generation: integer, nodes: listOf(node) });
export type NodesBody = BodyOf<typeof nodes>;
