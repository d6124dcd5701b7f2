import { type AnyShape, described, listOf, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";

/** A page of a list, and where the next one begins. */
export function pageShape<Item extends AnyShape>(item: Item) {
  return objectOf({
    items: listOf(item),
    next: optional(described(text, "The value of `after` for the next page. Absent: this is the last page.")),
  });
}

export interface PageBody<Item> {
  readonly items: readonly Item[];
  readonly next?: string | undefined;
}
