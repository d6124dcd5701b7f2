import { problem } from "../http/error.ts";
import { type BodyOf, boolean, described, integer, listOf, type ViewOf } from "../shapes/body-shape.ts";
import { type Fields, objectOf, optional } from "../shapes/object-body.ts";

const changeFields = {
  dry_run: boolean,
  generation: optional(
    described(integer, "The generation that nodes will decide by. Absent in a dry run, or if nothing changed."),
  ),
  warnings: described(listOf(problem), "What is legal, but may surprise."),
};

/** What a change came to. */
export const change = objectOf(changeFields);
export type ChangeBody = BodyOf<typeof change>;
export type ChangeView = ViewOf<typeof change>;

/** What a change came to, with what was changed. */
export function changeOf<F extends Fields>(fields: F) {
  return objectOf({ ...changeFields, ...fields });
}
