import { type AnyShape, described, listOf, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";

/** A part of a list, and where the next one begins. */
export function pageOf<Item extends AnyShape>(item: Item) {
  return objectOf({ items: listOf(item), next: optional(described(text, "Goes into `after`. Absent: the end.")) });
}

export interface PageBody<Item> {
  readonly items: readonly Item[];
  readonly next?: string | undefined;
}
