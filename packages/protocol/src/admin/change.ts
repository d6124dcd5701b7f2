import { problem } from "../http/error.ts";
import { type BodyOf, boolean, described, integer, listOf, type ViewOf } from "../shapes/body-shape.ts";
import { type Fields, objectOf, optional } from "../shapes/object-body.ts";

const changeFields = {
  dry_run: boolean,
  generation: optional(
    described(integer, "The generation that nodes will decide by. Absent in a dry run, or if nothing changed."),
  ),
  warnings: described(listOf(problem), "Things that are legal, but may surprise."),
};

/** The outcome of a change. */
export const change = objectOf(changeFields);
export type ChangeBody = BodyOf<typeof change>;
export type ChangeView = ViewOf<typeof change>;

/** The outcome of a change, with the changed object. */
export function changeShape<F extends Fields>(fields: F) {
  return objectOf({ ...changeFields, ...fields });
}
